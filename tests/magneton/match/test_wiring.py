"""Which values an operator depends on."""

import pytest
import torch
from torch import Tensor

from magneton.match.matching import match
from magneton.match.wiring import wire
from magneton.record.torch.capture import trace_callable
from magneton.workload import CALL


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def test_new_memory_depends_on_nothing():
    """Only its shape is that of what is given."""

    def step(x: Tensor) -> Tensor:
        return torch.empty_like(x).copy_(x * 3.0)

    wiring = wire(trace_callable(step, (torch.rand(4, 5),)), CALL)
    (made,) = (at for at, op in enumerate(wiring.operators) if op.effect == "alloc")
    assert wiring.inputs[made] == ()


def test_a_result_written_into_memory_shaped_like_another_value_ends_no_earlier_region():
    """An engine's attention writes into memory shaped like the queries; its projection depends on neither."""
    weight = torch.rand(16, 16)

    def plain(x: Tensor) -> Tensor:
        return torch.tanh(torch.sin(x)) @ weight

    def into_memory(x: Tensor) -> Tensor:
        query = torch.sin(x)
        out = torch.empty_like(query)
        out.copy_(torch.tanh(query))
        return out @ weight

    x = torch.rand(32, 16, generator=torch.Generator().manual_seed(0))
    matching = match(trace_callable(plain, (x,)), trace_callable(into_memory, (x,)))
    assert len(matching.regions) == 3
