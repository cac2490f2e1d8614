"""What may be repeated, and what repeating has to put back."""

from typing import Any

import pytest
import torch

from magneton.record.torch.repeating import (
    RESTORE_CAP_BYTES,
    Restore,
    reason_to_skip,
    same_draws_after,
    tensors_to_restore,
)

aten = torch.ops.aten


def must_restore(func: Any, *args: Any, **kwargs: Any) -> int:
    return len(tensors_to_restore(func, args, kwargs))


def test_who_reads_what_it_overwrites_is_restored():
    x = torch.ones(4)
    assert must_restore(aten.add_.Tensor, x, x) == 1
    assert must_restore(aten.index_put_.default, x, [torch.tensor([0])], torch.ones(1), True) == 1
    assert must_restore(aten.scatter_.reduce, x, 0, torch.tensor([0]), torch.ones(1), reduce="add") == 1
    assert must_restore(aten._foreach_add_.Scalar, [x, x.clone()], 1) == 2


def test_who_overwrites_without_reading_is_not():
    x, y = torch.ones(4), torch.zeros(4)
    index = torch.tensor([0])
    assert must_restore(aten.add.out, y, y, out=x) == 0
    assert must_restore(aten.copy_.default, x, y) == 0
    assert must_restore(aten.index_copy_.default, x, 0, index, torch.ones(1)) == 0
    assert must_restore(aten.index_put_.default, x, [index], torch.ones(1)) == 0
    assert must_restore(aten.mul.Tensor, x, y) == 0


def test_an_overwriter_whose_source_lies_in_the_same_memory_is_restored():
    x = torch.arange(4.0)
    assert must_restore(aten.copy_.default, x[1:], x[:-1]) == 1
    assert must_restore(aten.add.out, x, x, out=x) == 1


def test_restoring_puts_back_what_one_execution_changed():
    rows = torch.arange(12.0).view(3, 4)
    column = rows[:, 1]
    before = rows.clone()
    restore = Restore(aten.mul_.Tensor, (column, 7), {})
    assert restore
    aten.mul_.Tensor(column, 7)
    assert not rows.equal(before)
    restore()
    assert rows.equal(before)
    assert not Restore(aten.mul.Tensor, (column, 7), {})


@pytest.mark.parametrize(
    ("func", "args", "reason"),
    [
        (aten.view.default, (torch.zeros(4), [2, 2]), "view"),
        (aten.reshape.default, (torch.zeros(2, 4), [8]), "view"),
        (aten._unsafe_view.default, (torch.zeros(2, 4), [8]), "view"),
        (aten._local_scalar_dense.default, (torch.zeros(1),), "sync"),
        (aten.nonzero.default, (torch.zeros(4),), "sync"),
        (aten.resize_.default, (torch.zeros(4), [2]), "shape or storage"),
    ],
)
def test_what_must_not_be_repeated_says_why(func: Any, args: Any, reason: str):
    assert reason in (reason_to_skip(func, args, {}) or "")


def test_a_reshape_that_copies_is_work():
    assert reason_to_skip(aten.reshape.default, (torch.zeros(2, 4).t(), [8]), {}) is None


def test_collectives_are_never_repeated():
    pytest.importorskip("torch.distributed._functional_collectives")
    func = torch.ops._c10d_functional.all_reduce.default
    assert reason_to_skip(func, (torch.zeros(1), "sum", "group"), {}) == "collective"


def test_large_arguments_are_not_kept_aside_but_may_be_overwritten():
    large = torch.empty(RESTORE_CAP_BYTES // 4 + 1)
    assert "MiB" in (reason_to_skip(aten.add_.Tensor, (large, 1), {}) or "")
    assert reason_to_skip(aten.zero_.default, (large,), {}) is None


def test_a_higher_order_operator_is_not_repeated():
    assert reason_to_skip(torch.ops.higher_order.cond, (), {}) == "a higher-order operator"


def test_draws_are_the_same_after_repeating():
    x = torch.zeros(8)
    own = torch.Generator().manual_seed(3)
    for kwargs in ({}, {"generator": own}):
        torch.manual_seed(1)
        own.manual_seed(3)
        expected = aten.normal_.default(x, **kwargs).clone()
        torch.manual_seed(1)
        own.manual_seed(3)
        with same_draws_after(aten.normal_.default, (x,), kwargs):
            aten.normal_.default(x, **kwargs)
        assert aten.normal_.default(x, **kwargs).equal(expected)
