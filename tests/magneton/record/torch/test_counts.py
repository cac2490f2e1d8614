"""FLOPs and bytes of operators whose shapes are known."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from magneton.profile.model import Operator
from magneton.record.torch.capture import trace_callable


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def count(step: Callable[..., object], *args: Any) -> Operator:
    """The one operator of ``step`` that computes."""
    operators = [op for op in trace_callable(step, args).operators if op.effect not in ("view", "alloc")]
    (operator,) = operators
    return operator


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("step", "flops"),
    [
        (lambda: torch.mm(ones(3, 4), ones(4, 5)), 2 * 3 * 4 * 5),
        (lambda: torch.addmm(ones(5), ones(3, 4), ones(4, 5)), 2 * 3 * 4 * 5),
        (lambda: torch.bmm(ones(2, 3, 4), ones(2, 4, 5)), 2 * 2 * 3 * 4 * 5),
        (lambda: torch.mv(ones(3, 4), ones(4)), 2 * 3 * 4),
        (lambda: torch.addmv(ones(3), ones(3, 4), ones(4)), 2 * 3 * 4),
        (lambda: torch.dot(ones(9), ones(9)), 2 * 9),
        (lambda: F.conv2d(ones(1, 3, 8, 8), ones(4, 3, 3, 3)), 2 * 4 * 6 * 6 * 3 * 9),
        (lambda: F.conv1d(ones(1, 4, 8), ones(4, 1, 3), groups=4), 2 * 4 * 6 * 3),
        (lambda: torch.exp(ones(3, 4)), 12),
        (lambda: ones(3, 4) + ones(4), 12),
        (lambda: ones(3, 4).sum(), 12),
        (lambda: ones(3, 4).mul_(2), 12),
        (lambda: torch.softmax(ones(3, 4), -1), 12),
        (lambda: F.layer_norm(ones(3, 4), (4,)), 12),
        (lambda: torch.cat([ones(3), ones(3)]), 0),
        (lambda: ones(3, 4).clone(), 0),
        (lambda: ones(3, 4).half(), 0),
        (lambda: F.embedding(torch.tensor([1, 2]), ones(9, 4)), 0),
    ],
)
def test_flops(step: Callable[[], object], flops: int):
    counted = [op.flops for op in trace_callable(step, ()).operators]
    assert sum(counted) == flops


@pytest.mark.parametrize("kv_heads", [8, 2])
def test_attention_counts_scores_and_context(kv_heads: int):
    q, k, v = ones(2, 8, 5, 16), ones(2, kv_heads, 7, 16), ones(2, kv_heads, 7, 16)
    profile = trace_callable(lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=kv_heads < 8), ())
    flops = max(op.flops for op in profile.operators)
    assert flops == 2 * 2 * 8 * 5 * 7 * (16 + 16)


def test_attention_by_products_counts_the_same():
    q, k, v = ones(2, 8, 5, 16), ones(2, 8, 7, 16), ones(2, 8, 7, 16)
    profile = trace_callable(lambda: (q @ k.transpose(-1, -2)) @ v, ())
    assert sum(op.flops for op in profile.operators if "bmm" in op.name) == 2 * 2 * 8 * 5 * 7 * (16 + 16)


def test_bytes_of_elementwise_operators():
    x, row = ones(3, 4), ones(4)
    assert count(lambda: x + row).bytes_moved == 4 * (12 + 4 + 12)
    assert count(lambda: x + x).bytes_moved == 4 * (12 + 12)
    assert count(lambda: x.add_(row)).bytes_moved == 4 * (12 + 4 + 12)
    assert count(lambda: x.zero_()).bytes_moved == 4 * 12
    assert count(lambda: x.copy_(row)).bytes_moved == 4 * (4 + 12)
    assert count(lambda: torch.mul(x, row, out=x)).bytes_moved == 4 * (12 + 4 + 12)
    assert count(lambda: x.bfloat16()).bytes_moved == 4 * 12 + 2 * 12


def test_an_expanded_tensor_counts_the_memory_behind_it():
    row = ones(1, 4).expand(100, 4)
    assert count(lambda: row.sum()).bytes_moved == 4 * (4 + 1)
    assert count(lambda: row.contiguous()).bytes_moved == 4 * (4 + 400)


def test_a_strided_tensor_counts_its_elements_only():
    x = ones(10, 10)
    assert count(lambda: x[::2, ::2].exp()).bytes_moved == 4 * (25 + 25)


def test_a_gather_reads_only_the_rows_it_uses():
    table, rows = ones(1000, 4), torch.tensor([1, 2, 2])
    for step in (lambda: F.embedding(rows, table), lambda: table[rows], lambda: table.index_select(0, rows)):
        assert count(step).bytes_moved == 8 * 3 + 2 * 4 * 3 * 4
    everything = torch.arange(1000).repeat(3)
    assert count(lambda: F.embedding(everything, table)).bytes_moved == 8 * 3000 + 4 * (4000 + 12000)


def test_a_scatter_writes_only_what_it_is_given():
    cache, rows, new = ones(1000, 4), torch.tensor([7]), ones(1, 4)
    assert count(lambda: cache.index_copy_(0, rows, new)).bytes_moved == 8 + 16 + 16
    assert count(lambda: cache.index_put_((rows,), new)).bytes_moved == 8 + 16 + 16


def test_views_and_allocations_are_free():
    x = ones(3, 4)
    for operator in trace_callable(lambda: (x.t()[1:], torch.empty_like(x)), ()).operators:
        assert operator.flops == operator.bytes_moved == 0


def test_a_sync_reads_what_it_brings():
    x = ones(1)
    operator = count(lambda: x.item())
    assert (operator.effect, operator.flops, operator.bytes_moved) == ("sync", 0, 4)
