"""Tracer, blocks, windows and replay on one clock of ours: nothing in between asks the machine for the time.

Every operator draws its own power for its own time, and nothing else takes any. So a step costs what its
operators cost, and what replay says of them has to add up to what the clean pass says.
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from looking import Load, LookingMeter
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch_steps import FunctionSystem

from magneton.record.blocks import run_clean_block
from magneton.record.journal import Journal
from magneton.record.torch.calls import signature_of
from magneton.record.torch.tracer import TorchTracer
from magneton.record.windows import Windows
from magneton.workload import CALL

PRICES: Mapping[str, tuple[float, float]] = {  # seconds, watts
    "aten::addmm": (0.004, 420.0),
    "aten::bmm": (0.003, 350.0),
    "aten::_softmax": (0.002, 180.0),
    "aten::add": (0.001, 220.0),
}
OTHERS = (0.0006, 150.0)
FREE = ("aten::view", "aten::_unsafe_view", "aten::t", "aten::transpose", "aten::split", "aten::expand")


class Device(TorchDispatchMode):
    """Below everything: an operator takes its time on a load in virtual time."""

    def __init__(self, load: Load) -> None:
        super().__init__()
        self._load = load

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = signature_of(func).name
        if name not in FREE:
            self._load.draw(*PRICES.get(name, OTHERS))
        return func(*args, **(kwargs or {}))


class Layer(nn.Module):
    """Attention over a cache that is written in place, twice in a step."""

    keys: torch.Tensor
    place: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.register_buffer("keys", torch.zeros(2, 4, 8))
        self.register_buffer("place", torch.tensor([3]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).split(8, dim=-1)
        self.keys.index_copy_(1, self.place, k)
        mixed = (q @ self.keys.transpose(1, 2)).softmax(-1) @ self.keys
        return self.out(mixed + v).add_(x)


def system() -> FunctionSystem:
    layer, x = Layer(), torch.randn(2, 1, 8)

    @torch.no_grad()
    def step() -> Mapping[str, Any]:
        return {"y": layer(layer(x))}

    return FunctionSystem(step, before=layer.keys.zero_, roots={"": layer, "input": {"x": x}})


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{table}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("look_s", [0.025, 0.1])
def test_what_operators_cost_adds_up_to_what_the_step_costs(tmp_path: Path, look_s: float):
    load = Load()
    windows = Windows(LookingMeter(load, look_s=look_s), clock=load, seed=2)
    tracer, work = TorchTracer(clock_s=load), system()
    with Device(load), Journal(tmp_path) as journal:
        tracer.trace(work, CALL, journal)
        windows.rest("before", 3.0, now_s=load())
        run_clean_block(work, CALL, 80, 0, windows, clock_s=load)  # learns how long a step lasts
        block, _ = run_clean_block(work, CALL, 80, 1, windows, clock_s=load)
        for round in range(3):
            tracer.replay(work, CALL, round, windows, journal, 1e9)
    executed = Counter(row["key_id"] for row in rows(tmp_path, "operators"))
    replays = rows(tmp_path, "replays")
    assert block.energy_j is not None
    for figure, whole in (("energy_j", block.energy_j / 80), ("duration_s", block.duration_s / 80)):
        for round in range(3):
            parts = sum(row[figure] * executed[row["key_id"]] for row in replays if row["round"] == round)
            assert parts == pytest.approx(whole, rel=0.03)
    assert not (tmp_path / "doubts.jsonl").exists()


def test_a_recording_in_virtual_time_is_the_same_each_time(tmp_path: Path):
    def record(folder: Path) -> list[dict[str, Any]]:
        load = Load()
        tracer, work = TorchTracer(clock_s=load), system()
        with Device(load), Journal(folder) as journal:
            tracer.trace(work, CALL, journal)
            tracer.replay(work, CALL, 0, Windows(LookingMeter(load), clock=load, seed=5), journal, 1e9)
        return rows(folder, "replays")

    assert record(tmp_path / "first") == record(tmp_path / "second")
