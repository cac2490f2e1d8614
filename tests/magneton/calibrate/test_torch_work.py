"""Benchmarks as PyTorch runs them on a processor: they run, and do what is counted."""

from pathlib import Path
from typing import Any

import pytest
import torch
from planted_device import SimulatedTime
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from magneton.calibrate.plan import benchmarks_for
from magneton.calibrate.torch_work import TorchWorkbench, last_cache_bytes, moved_bytes, torch_workbench
from magneton.calibrate.workbench import (
    CACHE,
    LAUNCH,
    MEMORY,
    REST_S,
    ZEROS,
    Benchmark,
    energy_term,
)
from magneton.errors import MagnetonError

VECTOR = energy_term("vector", "float32")
SMALL = (
    Benchmark(name="launch", work="launch", size=1, amounts={LAUNCH: 1.0}),
    Benchmark(name="sum", work="sum", size=4096, amounts={CACHE: 16384.0, VECTOR: 4096.0}),
    Benchmark(name="copy", work="copy", size=4096, amounts={CACHE: 32768.0}),
    Benchmark(name="zeros", work="copy", size=4096, data="zeros", amounts={CACHE + ZEROS: 32768.0}),
    Benchmark(name="float32", work="matmul", size=64, amounts={VECTOR: 2.0 * 64**3, CACHE: 49152.0}),
    Benchmark(
        name="bfloat16",
        work="matmul",
        arithmetic="bfloat16",
        size=64,
        amounts={energy_term("matrix", "bfloat16"): 2.0 * 64**3, CACHE: 24576.0},
    ),
)


@pytest.mark.parametrize("benchmark", SMALL, ids=lambda benchmark: benchmark.name)
def test_every_kind_of_work_runs(benchmark: Benchmark) -> None:
    workbench = torch_workbench("cpu", SimulatedTime())

    workbench.run(benchmark, 3)
    workbench.synchronise()


def test_rest_takes_its_time_and_nothing_else() -> None:
    clock = SimulatedTime()

    torch_workbench("cpu", clock).run(Benchmark(name="rest", work="rest", amounts={}), 7)

    assert clock.now_s() == pytest.approx(7 * REST_S)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_matmul_does_as_many_operations_as_are_counted(name: str) -> None:
    (benchmark,) = [each for each in SMALL if each.name == name]
    workbench = torch_workbench("cpu", SimulatedTime())
    workbench.run(benchmark, 1)

    with FlopCounterMode(display=False) as counter:
        workbench.run(benchmark, 5)

    (counted,) = [count for term, count in benchmark.amounts.items() if term.endswith("j_per_flop")]
    assert counter.get_total_flops() == 5 * counted


class Operands(TorchDispatchMode):
    """The tensors that operators are called with."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[torch.Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.found += [each for each in args if isinstance(each, torch.Tensor)]
        return func(*args, **kwargs or {})


def operands(workbench: TorchWorkbench, benchmark: Benchmark) -> list[torch.Tensor]:
    """Of one repetition, after the one that makes them."""
    workbench.run(benchmark, 1)
    with Operands() as seen:
        workbench.run(benchmark, 1)
    return seen.found


def test_operands_are_random_or_zero_as_asked() -> None:
    workbench = torch_workbench("cpu", SimulatedTime())
    by_name = {each.name: each for each in SMALL}

    random = operands(workbench, by_name["copy"])
    zeros = operands(workbench, by_name["zeros"])

    assert len(random) == len(zeros) == 2
    assert all(float(each.std()) == pytest.approx(1.0, rel=0.1) for each in random)
    assert all(not each.any() for each in zeros)


def test_streams_move_as_many_bytes_as_are_counted() -> None:
    workbench = torch_workbench("cpu", SimulatedTime())
    by_name = {each.name: each for each in SMALL}

    copied = operands(workbench, by_name["copy"])

    assert sum(each.nbytes for each in copied) == moved_bytes(by_name["copy"])


def test_what_a_processor_is_like_makes_a_plan() -> None:
    facts = torch_workbench("cpu", SimulatedTime()).facts()

    assert facts.kind == "cpu" and facts.name and facts.free_bytes > 0
    assert any(MEMORY in benchmark.amounts for benchmark in benchmarks_for(facts))
    assert not any(benchmark.work == "chain" for benchmark in benchmarks_for(facts))


def test_a_board_that_is_not_there_is_refused() -> None:
    with pytest.raises(MagnetonError, match="sees no cuda:99") as raised:
        torch_workbench("cuda:99", SimulatedTime())
    assert "--device cpu" in raised.value.hint


def test_the_last_level_of_the_cache_is_the_one_that_counts(tmp_path: Path) -> None:
    for index, level, size in ((0, "1", "48K"), (1, "3", "105M"), (2, "2", "2048K")):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")
    (tmp_path / "index3").mkdir()

    assert last_cache_bytes(tmp_path) == 105 * 2**20


def test_a_kernel_that_does_not_tell_its_caches_is_no_error(tmp_path: Path) -> None:
    assert last_cache_bytes(tmp_path / "absent") is None
