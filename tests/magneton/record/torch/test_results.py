"""An operator that is repeated is asked whether it still computes what it computed first."""

import torch

from magneton.record.torch.results import RESULTS_CAP_BYTES, Results

aten = torch.ops.aten


def test_the_same_work_gives_the_same_bits():
    x = torch.randn(8, 8)
    x[0, 0] = torch.nan
    for func, args in (
        (aten.mm.default, (x, x)),
        (aten.eq.Tensor, (x, x)),
        (aten.sum.default, (x,)),
        (aten.view_as_complex.default, (x.view(8, 4, 2),)),
        (aten.split.Tensor, (x, 4)),
        (aten.relu.default, (x.to(torch.float8_e4m3fn).to(torch.bfloat16),)),
    ):
        assert not Results(func, args, {}).differ()


def test_work_that_goes_on_from_call_to_call_differs():
    calls: list[int] = []

    def counting(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + len(calls)

    results = Results(counting, (torch.zeros(3),), {})
    assert results.differ()
    assert len(calls) == 2


def test_one_bit_is_a_difference():
    answers = iter([torch.tensor([1.0, 0.0]), torch.tensor([1.0, -0.0])])
    assert Results(lambda: next(answers), (), {}).differ()


def test_another_shape_is_a_difference():
    answers = iter([torch.zeros(2), torch.zeros(3)])
    assert Results(lambda: next(answers), (), {}).differ()


def test_what_is_changed_in_place_is_compared_with_what_it_was_then():
    x = torch.zeros(3)
    results = Results(aten.add_.Tensor, (x, 1), {})
    assert results.differ()  # nobody has put it back
    x.zero_()
    results = Results(aten.add_.Tensor, (x, 1), {})
    x.zero_()
    assert not results.differ()


def test_what_says_nothing_of_the_work_is_not_compared():
    x = torch.zeros(64)
    assert not Results(aten.rand_like.default, (x,), {}).differ()
    assert not Results(aten.empty_like.default, (x,), {}).differ()
    answers = iter([torch.zeros(RESULTS_CAP_BYTES // 4 + 1), torch.ones(1)])
    assert not Results(lambda: next(answers), (), {}).differ()
    assert not Results(lambda: None, (), {}).differ()
