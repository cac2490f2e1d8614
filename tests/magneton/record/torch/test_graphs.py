"""What may be captured. That capturing works is for a machine with a board to show (``-m gpu``)."""

from typing import Any

import pytest
import torch
from on_board import OnBoard

from magneton.record.torch.graphs import CudaGraphs, may_capture

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (aten.mm.default, (torch.zeros(2, 2), torch.zeros(2, 2))),  # on the processor
        (aten.rand.default, ([2],)),
        (aten._local_scalar_dense.default, (torch.zeros(1),)),
        (aten.resize_.default, (torch.zeros(4), [2])),
        (torch.ops.higher_order.cond, ()),
    ],
)
def test_what_speaks_against_capturing_is_known_beforehand(func: Any, args: Any):
    assert not may_capture(func, args, {})


def test_work_on_a_board_may_be_captured():
    x = torch.zeros(2, 2).as_subclass(OnBoard)
    assert may_capture(aten.mm.default, (x, x), {})
    assert not may_capture(aten.rand_like.default, (x,), {})
    assert not may_capture(aten.mm.default, (x, torch.zeros(2, 2)), {})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_graph_does_what_its_executions_do_and_a_failure_is_no_crash():
    x = torch.zeros(4, device="cuda")
    graphs = CudaGraphs()
    replay = graphs.capture(lambda: x.add_(1), 5)
    assert replay is not None
    torch.cuda.synchronize()
    x.zero_()
    replay()
    torch.cuda.synchronize()
    assert x.tolist() == [5.0] * 4
    assert graphs.capture(lambda: x.sum().item(), 2) is None
    assert graphs.capture(lambda: x.add_(1), 5) is None  # after one failure no more
    assert float(x.sum()) == 20.0
