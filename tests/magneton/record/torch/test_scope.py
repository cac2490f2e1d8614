"""Operators carry the scope they ran in; outside any module it stands for the module."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from magneton.record.torch.dataflow import Recorder
from magneton.workload import CALL


class Engine:
    def __init__(self) -> None:
        self.model = nn.Linear(2, 2)

    def step(self) -> Tensor:
        return self.model(self.prepare()).relu()

    def prepare(self) -> Tensor:
        return torch.ones(2).mul(3)


def recorded(table: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Module path and scope by operator."""
    engine, recorder = Engine(), Recorder()
    with torch.no_grad(), recorder.phase(CALL, {"linear": engine.model, "scopes": table}) as recording:
        engine.step()
    return {op.name: (op.module_path, op.scope) for op in recording.trace.operators}


def test_an_operator_has_the_scope_of_the_function_it_runs_in():
    found = recorded({"Engine.prepare": "input preparation", "Engine.step": "engine loop"})
    assert found["aten.mul.Tensor"] == ("input preparation", "input preparation")
    assert found["aten.relu.default"] == ("engine loop", "engine loop")


def test_a_module_goes_before_the_scope():
    found = recorded({"Engine.step": "engine loop"})
    assert found["aten.addmm.default"] == ("linear", "engine loop")


def test_without_a_table_nothing_has_a_scope():
    assert set(recorded({}).values()) == {("", ""), ("linear", "")}


def test_functions_around_the_recording_do_not_count():
    assert recorded({"recorded": "the test"})["aten.mul.Tensor"] == ("the test", "the test")
    assert recorded({"test_functions_around_the_recording_do_not_count": "x"})["aten.mul.Tensor"] == ("", "")
