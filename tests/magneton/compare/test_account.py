from dataclasses import replace

import pytest
from comparisons import a_side, matched, with_readings_lost
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from magneton.compare.model import Comparison, Criteria, Row, SideCost
from magneton.compare.profiles import compare
from magneton.profile.model import Profile
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

costs = st.tuples(*[st.floats(1e-6, 1e3)] * 3)
COUNTED = MeterInfo(name="counted:flops", unit="FLOP", provenance=Provenance.COUNTED)


def of(baseline: Profile, candidate: Profile, *, left: tuple[str, ...] = ()) -> Comparison:
    return compare(baseline, candidate, matched(baseline, candidate, left=left), Criteria())


def spent(sides: list[SideCost | None]) -> float:
    return sum(side.cost.value for side in sides if side is not None and side.cost is not None)


def row(comparison: Comparison, kind: str) -> Row:
    (found,) = (each for each in comparison.rows if each.kind == kind)
    return found


@settings(max_examples=40)
@given(costs, costs, st.floats(-1, 10), st.sampled_from([(), ("aten.mm.default",), ("aten.bmm.default",)]))
def test_rows_of_a_side_sum_to_its_clean_total(
    one: tuple[float, ...], other: tuple[float, ...], residual_j: float, left: tuple[str, ...]
) -> None:
    comparison = of(
        a_side(one, residual_j=min(one) * residual_j), a_side(other, residual_j=other[0], seed=5), left=left
    )
    (total,) = comparison.totals

    assert total.baseline_cost is not None
    assert total.candidate_cost is not None
    assert spent([r.baseline for r in comparison.rows]) == approx(total.baseline_cost.value)
    assert spent([r.candidate for r in comparison.rows]) == approx(total.candidate_cost.value)


@settings(max_examples=20)
@given(st.floats(0.01, 100))
def test_k_times_the_energy_is_k_times_every_row(factor: float) -> None:
    base = (1.0, 0.5, 2.0)
    plain = of(a_side(base), a_side(base))
    scaled = of(a_side(base), a_side(tuple(factor * c for c in base), residual_j=factor))

    for one, other in zip(plain.rows, sorted_like(plain, scaled), strict=True):
        assert one.candidate is not None
        assert other.candidate is not None
        assert one.candidate.cost is not None
        assert other.candidate.cost is not None
        assert other.candidate.cost.value == approx(factor * one.candidate.cost.value)


def sorted_like(plain: Comparison, other: Comparison) -> list[Row]:
    order = {(r.kind, r.group): index for index, r in enumerate(plain.rows)}
    return sorted(other.rows, key=lambda r: order[r.kind, r.group])


def test_a_group_sums_its_layers_and_counts_them() -> None:
    comparison = of(a_side((1.0, 0.5, 2.0), noise=0.0), a_side((2.0, 0.5, 2.0), noise=0.0))
    attention = comparison.rows[0]

    assert attention.repeats == 4
    assert attention.baseline is not None
    assert attention.baseline.cost is not None
    assert attention.baseline.cost.value == approx(4 * 1.5)
    assert attention.excess == approx(4 * 1.0)
    assert attention.ratio is not None
    assert attention.ratio.value == approx(2.5 / 1.5)
    assert attention.baseline.work is not None
    assert attention.baseline.work.module_path == "model.layers.0-3.self_attn"
    assert attention.baseline.work.operators == (("aten.bmm.default", 1), ("aten._softmax.default", 1))
    assert attention.baseline.work.source is not None
    assert attention.baseline.work.source.line == 11


def test_the_residual_may_be_negative_and_is_never_spread_over_operators() -> None:
    comparison = of(a_side(residual_j=-3.0, noise=0.0), a_side(residual_j=1.0, noise=0.0))
    residual = row(comparison, "residual")

    assert residual.baseline is not None
    assert residual.baseline.cost is not None
    assert residual.baseline.cost.value == approx(-3.0)
    assert residual.excess == approx(4.0)


def test_a_large_residual_is_noted_with_its_side() -> None:
    comparison = of(a_side(residual_j=-6.0), a_side(residual_j=10.0))

    overstated, between = comparison.notes
    assert "baseline" in overstated
    assert "replay overstates" in overstated
    assert "candidate" in between
    assert "between operators" in between
    assert of(a_side(), a_side()).notes == ()


def test_equal_leftovers_of_repeated_layers_are_one_row() -> None:
    comparison = of(a_side(), a_side(), left=("aten.mm.default",))
    leftovers = [r for r in comparison.rows if r.kind == "leftover"]

    assert [r.repeats for r in leftovers] == [4, 4]
    assert {r.baseline is None for r in leftovers} == {True, False}
    assert {r.reason for r in leftovers} == {"no-counterpart-value"}


def test_operators_without_a_reading_have_a_row_and_no_cost() -> None:
    comparison = of(with_readings_lost(a_side(), key=2), a_side())
    unread = row(comparison, "unread")

    assert unread.baseline is not None
    assert unread.baseline.executions == 4
    assert unread.baseline.cost is None
    assert unread.candidate is None


def test_views_without_a_reading_leave_no_gap() -> None:
    views = a_side(effect="view")
    comparison = of(replace(views, replays=()), replace(views, replays=()))

    assert not [r for r in comparison.rows if r.kind == "unread"]


def test_counts_add_up_without_a_residual() -> None:
    comparison = of(a_side(meter=COUNTED), a_side(meter=COUNTED))
    residual = row(comparison, "residual")

    assert residual.baseline is not None
    assert residual.baseline.cost is not None
    assert residual.baseline.cost.value == 0.0
    assert comparison.totals[0].cost_ratio is not None
    assert comparison.totals[0].cost_ratio.low == comparison.totals[0].cost_ratio.high == 1.0


def test_no_reading_of_a_step_is_not_zero() -> None:
    silent = a_side()
    silent = replace(silent, blocks=tuple(replace(b, energy_j=None) for b in silent.blocks))
    comparison = of(silent, a_side())

    assert comparison.totals[0].baseline_cost is None
    assert comparison.totals[0].cost_ratio is None
    assert row(comparison, "residual").excess is None


def test_sides_recorded_apart_have_wider_ratios() -> None:
    together = of(a_side(), a_side(seed=3)).totals[0].cost_ratio
    apart = of(a_side(session=""), a_side(session="", seed=3)).totals[0].cost_ratio

    assert together is not None
    assert apart is not None
    assert apart.high - apart.low > together.high - together.low


def test_pairs_are_made_by_round_and_not_by_position() -> None:
    baseline, candidate = a_side(noise=0.2), a_side(noise=0.2)
    late = replace(candidate, blocks=candidate.blocks[2:], replays=candidate.replays[6:])

    for each in of(baseline, late).rows:
        if each.ratio is not None:
            assert each.ratio.value == pytest.approx(1.0)
            assert each.ratio.high == pytest.approx(1.0)
