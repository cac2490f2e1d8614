"""The profiler's time lands on the operators that the dataflow pass saw."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from journal_rows import operator
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch_steps import ClockMeter, FunctionSystem

from magneton.profile.model import KeyId, OpId
from magneton.record.journal import Journal
from magneton.record.torch.timeline import ELSEWHERE, Timeline
from magneton.record.windows import Windows
from magneton.workload import CALL


class Names(TorchDispatchMode):
    """The names that a dataflow pass would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def traced(system: FunctionSystem) -> list[tuple[OpId, str]]:
    with Names() as names:
        system.step(CALL)
    return [(OpId(100 + place), name) for place, name in enumerate(names.seen)]


def small_model(mode: Any) -> FunctionSystem:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    x = torch.randn(2, 8, 32)

    def work() -> Mapping[str, Any]:
        with mode():
            return {"y": layer(x) @ x.transpose(1, 2)}

    return FunctionSystem(work)


def rows(journal: Journal, table: str) -> list[dict[str, Any]]:
    path = journal.folder / f"{table}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_every_traced_operator_of_a_model_gets_a_duration(mode: Any, tmp_path: Path):
    system = small_model(mode)
    operators = traced(system)
    with Journal(tmp_path) as journal:
        Timeline(CALL, operators).run(system, 2, 0, Windows(ClockMeter()), journal)
    durations = {row["op_id"]: row["duration_s"] for row in rows(journal, "durations")}
    assert set(durations) == {op_id for op_id, _ in operators}
    assert all(duration_s > 0 for duration_s in durations.values())
    assert rows(journal, "doubts") == []


def test_durations_go_to_the_operators_that_spent_the_time(tmp_path: Path):
    large, small = torch.randn(1000, 1000), torch.randn(4, 4)
    system = FunctionSystem(lambda: {"y": [small @ small, large @ large, small @ small]})
    with Journal(tmp_path) as journal:
        Timeline(CALL, traced(system)).run(system, 3, 0, Windows(ClockMeter()), journal)
    first, heavy, last = (row["duration_s"] for row in rows(journal, "durations"))
    assert heavy > 10 * max(first, last)


def test_the_reading_is_that_of_the_block(tmp_path: Path):
    system = small_model(torch.no_grad)
    with Journal(tmp_path) as journal:
        reading = Timeline(CALL, traced(system)).run(system, 2, 5, Windows(ClockMeter(power_w=3.0)), journal)
    assert (reading.pass_, reading.phase, reading.round, reading.steps) == ("timeline", CALL, 5, 2)
    assert reading.energy_j == pytest.approx(3.0 * reading.duration_s)
    assert system.calls[-4:] == ["rewind", "step"] * 2


def test_host_spans_add_up_to_the_step(tmp_path: Path):
    system = small_model(torch.no_grad)
    with Journal(tmp_path) as journal:
        Timeline(CALL, traced(system)).run(system, 1, 0, Windows(ClockMeter()), journal)
    kernels = rows(journal, "kernels")
    rest = [row for row in kernels if row["name"] == ELSEWHERE]
    assert len(rest) == 1 and rest[0]["op_id"] is None
    spans = sorted((row["start_s"], row["duration_s"]) for row in kernels if row["name"] != ELSEWHERE)
    for (start_s, duration_s), (next_s, _) in pairwise(spans):
        assert start_s + duration_s <= next_s + 1e-9
    assert rest[0]["duration_s"] > 0


def test_spans_are_kept_of_the_first_block_only_and_durations_of_each(tmp_path: Path):
    system = small_model(torch.no_grad)
    operators = traced(system)
    with Journal(tmp_path) as journal:
        timeline = Timeline(CALL, operators)
        timeline.run(system, 1, 0, Windows(ClockMeter()), journal)
        kept = len(rows(journal, "kernels"))
        timeline.run(system, 1, 1, Windows(ClockMeter()), journal)
    assert len(rows(journal, "kernels")) == kept
    assert len(rows(journal, "durations")) == 2 * len(operators)


def test_a_timeline_of_other_work_is_doubted(tmp_path: Path):
    system = small_model(torch.no_grad)
    strangers = [(OpId(place), "aten.conv2d.default") for place in range(5)]
    with Journal(tmp_path) as journal:
        Timeline(CALL, strangers).run(system, 1, 0, Windows(ClockMeter()), journal)
    assert [row["kind"] for row in rows(journal, "doubts")] == ["timeline-incomplete"]
    assert rows(journal, "durations") == []
    assert {row["op_id"] for row in rows(journal, "kernels")} == {None}


def test_a_training_step_is_recognised_up_to_what_autograd_adds(tmp_path: Path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
    x = torch.randn(8, 16)

    def work() -> Mapping[str, Any]:
        model.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        return {"loss": loss.detach()}

    system = FunctionSystem(work)
    operators = traced(system)
    with Journal(tmp_path) as journal:
        Timeline(CALL, operators).run(system, 1, 0, Windows(ClockMeter()), journal)
    unseen = {op_id for op_id, _ in operators} - {row["op_id"] for row in rows(journal, "durations")}
    assert {name for op_id, name in operators if op_id in unseen} <= {"aten.detach.default"}


def test_times_of_kernels_are_known_by_key_where_a_device_was_seen():
    one, other = replace(operator(1), key_id=KeyId(0)), replace(operator(2), key_id=KeyId(0))
    unseen = replace(operator(3), key_id=KeyId(1))
    timeline = Timeline(CALL, [])
    timeline.durations_s = {one.op_id: 2e-6, other.op_id: 4e-6}
    assert timeline.kernels_s((one, other, unseen)) == {}
    timeline.on_device = True
    assert timeline.kernels_s((one, other, unseen)) == {KeyId(0): pytest.approx(3e-6)}
