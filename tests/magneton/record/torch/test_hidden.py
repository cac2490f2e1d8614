"""Weights that an operator is not given."""

import pytest
import torch
from custom_operators import PACKED, ops
from torch import Tensor, nn

from magneton.profile.model import Profile
from magneton.record.torch.capture import trace_callable
from magneton.record.torch.dataflow import Recorder
from magneton.workload import CALL


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


class Packed(nn.Module):
    """A linear layer whose kernel keeps the weight."""

    def __init__(self, *, keeps: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 3))
        PACKED.append(self.weight.detach().clone())
        self.handle = torch.tensor(len(PACKED) - 1)
        if not keeps:
            self.weight = nn.Parameter(torch.empty(0))

    def forward(self, x: Tensor) -> Tensor:
        return self.apply_packed(x, self.weight)

    def apply_packed(self, x: Tensor, weight: Tensor) -> Tensor:
        del weight  # a reader of the code sees it here; the kernel has its own
        out = torch.empty(x.shape[0], 3)
        ops.packed_linear(x, self.handle, out)
        return out


class WithWeight(Packed):
    def apply_packed(self, x: Tensor, weight: Tensor) -> Tensor:
        out = torch.empty(x.shape[0], 3)
        ops.packed_linear(x, self.handle, out)
        return out + weight.sum() * 0.0


def weights_of(profile: Profile) -> list[str]:
    (operator,) = (op for op in profile.operators if op.name.startswith("magneton_engine.packed_linear"))
    return [profile.values[v].name for v in operator.inputs if profile.values[v].role == "parameter"]


def test_a_weight_that_the_calling_code_has_is_found():
    assert weights_of(trace_callable(WithWeight(keeps=True), (torch.rand(2, 4),))) == ["weight"]


def test_a_weight_that_is_nowhere_is_not_made_up():
    assert weights_of(trace_callable(Packed(keeps=False), (torch.rand(2, 4),))) == []


def test_a_weight_that_the_adapter_names_is_found():
    model = nn.Sequential(Packed(keeps=False))
    x, recorder = torch.rand(2, 4), Recorder()
    weight = PACKED[-1].clone()
    with recorder.phase(CALL, {"": model, "hidden": {"0": weight}}) as recording:
        model(x)
    trace = recording.trace
    (operator,) = (op for op in trace.operators if "packed_linear" in op.name)
    (found,) = (trace.values[v] for v in operator.inputs if trace.values[v].role == "parameter")
    assert (found.name, found.shape) == ("0.weight", (4, 3))
