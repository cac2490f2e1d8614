"""Equal keys for equal work, different keys for anything the cost can depend on."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from magneton.record.torch.keys import CONTENT_ELEMENTS, operator_key

aten = torch.ops.aten


def key(func: Any, *args: Any, **kwargs: Any) -> str:
    return operator_key(func, args, kwargs)


def test_values_of_floats_do_not_count():
    assert key(aten.mm.default, torch.zeros(4, 8), torch.zeros(8, 2)) == key(
        aten.mm.default, torch.ones(4, 8), torch.randn(8, 2)
    )


def sixteen() -> torch.Tensor:
    return torch.zeros(16, 16)


@pytest.mark.parametrize(
    "other",
    [
        lambda: key(aten.sub.Tensor, sixteen(), 1),
        lambda: key(aten.add.Tensor, torch.zeros(16, 17), 1),
        lambda: key(aten.add.Tensor, sixteen().double(), 1),
        lambda: key(aten.add.Tensor, torch.zeros(32, 16).as_strided((16, 16), (32, 1)), 1),
        lambda: key(aten.add.Tensor, torch.zeros(17, 16).view(-1)[1:257].view(16, 16), 1),
        lambda: key(aten.add.Tensor, sixteen().to("meta"), 1),
        lambda: key(aten.add.Tensor, sixteen(), 2),
        lambda: key(aten.add.Tensor, sixteen(), 1, alpha=2),
        lambda: key(aten.add.Tensor, sixteen().to_sparse(), 1),
    ],
    ids=["operator", "shape", "dtype", "strides", "alignment", "device", "scalar", "keyword", "layout"],
)
def test_what_the_cost_depends_on_changes_the_key(other: Callable[[], str]):
    assert other() != key(aten.add.Tensor, sixteen(), 1)


def test_an_offset_of_whole_cache_lines_does_not_count():
    rows = torch.zeros(64, 16)
    assert key(aten.neg.default, rows[0:4]) == key(aten.neg.default, rows[8:12])


def test_small_integer_tensors_count_by_content():
    table = torch.zeros(10, 4)
    first, second = torch.tensor([1, 2, 3]), torch.tensor([1, 2, 9])
    assert key(aten.embedding.default, table, first) == key(aten.embedding.default, table, first.clone())
    assert key(aten.embedding.default, table, first) != key(aten.embedding.default, table, second)


def test_content_is_read_inside_lists_and_in_logical_order():
    x = torch.zeros(4, 4)
    chosen = torch.tensor([[0, 1], [2, 3]])
    assert key(aten.index.Tensor, x, [chosen]) != key(aten.index.Tensor, x, [chosen + 0 * chosen.flip(0) + 1])
    turned = chosen.t().contiguous().t()
    assert key(aten.index.Tensor, x, [turned]) != key(aten.index.Tensor, x, [chosen.t().contiguous()])


def test_large_integer_tensors_count_by_layout_only():
    size = CONTENT_ELEMENTS + 1
    assert key(aten.neg.default, torch.zeros(size, dtype=torch.int64)) == key(
        aten.neg.default, torch.ones(size, dtype=torch.int64)
    )


def test_content_that_is_overwritten_or_only_viewed_does_not_count():
    zeros, ones = torch.zeros(8, dtype=torch.int64), torch.ones(8, dtype=torch.int64)
    assert key(aten.copy_.default, zeros, ones) == key(aten.copy_.default, ones, ones)
    assert key(aten.arange.out, 8, out=zeros) == key(aten.arange.out, 8, out=ones)
    assert key(aten.view.default, zeros, [2, 4]) == key(aten.view.default, ones, [2, 4])


def test_keyword_order_does_not_count():
    x = torch.zeros(3)
    assert key(aten._to_copy.default, x, dtype=torch.float16, device=torch.device("cpu")) == key(
        aten._to_copy.default, x, device=torch.device("cpu"), dtype=torch.float16
    )


def test_generators_count_by_presence_and_not_by_address():
    x = torch.zeros(3)
    first, second = torch.Generator(), torch.Generator()
    assert key(aten.normal_.default, x, generator=first) == key(aten.normal_.default, x, generator=second)
    assert key(aten.normal_.default, x, generator=first) != key(aten.normal_.default, x, generator=None)


def test_nesting_of_lists_counts():
    x = torch.zeros(3)
    assert key(aten.cat.default, [x, x], 0) != key(aten.cat.default, [x], 0)
    assert key(aten.new_zeros.default, x, [2, 3]) != key(aten.new_zeros.default, x, [23])
