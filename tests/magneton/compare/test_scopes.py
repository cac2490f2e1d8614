"""The residual in parts: they add up to it, and say what the samples can tell."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from comparisons import a_side, matched
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from magneton.compare.model import Comparison, Criteria, Row, ScopeRow
from magneton.compare.profiles import compare
from magneton.profile.model import Profile, ScopeTime
from magneton.workload import PREFILL

FORWARD, SAMPLING, INTAKE = "model forward", "sampling", "request intake"
TICKS = 10_000


def surveyed(profile: Profile, shares: Mapping[str, float], *, ticks: int = TICKS) -> Profile:
    """Attention runs in the model, the mlp in sampling; ``shares`` are those of a step."""
    return replace(
        profile,
        operators=tuple(
            replace(op, scope=SAMPLING if op.module_path.endswith("mlp") else FORWARD)
            for op in profile.operators
        ),
        scopes=tuple(
            ScopeTime(phase=PREFILL, scope=scope, duration_s=share, samples=round(ticks * share))
            for scope, share in shares.items()
        ),
    )


def of(baseline: Profile, candidate: Profile) -> Comparison:
    return compare(baseline, candidate, matched(baseline, candidate), Criteria())


def residual(comparison: Comparison) -> Row:
    (found,) = (row for row in comparison.rows if row.kind == "residual")
    return found


def part(comparison: Comparison, scope: str) -> ScopeRow:
    (found,) = (row for row in residual(comparison).scopes if row.scope == scope)
    return found


def costs(comparison: Comparison) -> tuple[dict[str, float], dict[str, float]]:
    """Between operators, by scope, of both sides."""
    rows = residual(comparison).scopes
    baseline = {row.scope: row.baseline.cost.value for row in rows if row.baseline and row.baseline.cost}
    candidate = {row.scope: row.candidate.cost.value for row in rows if row.candidate and row.candidate.cost}
    return baseline, candidate


# Four layers of 1.0 + 0.5 J in attention and 2.0 J in the mlp: 6 J in the model, 8 J in sampling, 6 J more.
BASE: dict[str, Any] = {"residual_j": 6.0, "noise": 0.0}


def test_a_scope_costs_its_share_of_the_step_less_its_operators() -> None:
    side = surveyed(a_side(**BASE), {FORWARD: 0.4, SAMPLING: 0.45, INTAKE: 0.15})
    assert costs(of(side, side))[0] == approx({FORWARD: 2.0, SAMPLING: 1.0, INTAKE: 3.0})


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from((FORWARD, SAMPLING, INTAKE, "")), st.floats(0.01, 1), min_size=1),
    st.floats(0.1, 20),
    st.integers(0, 100),
)
def test_the_parts_add_up_to_the_residual(shares: dict[str, float], residual_j: float, seed: int) -> None:
    side = surveyed(a_side(residual_j=residual_j, seed=seed), shares)
    comparison = of(side, a_side())
    whole = residual(comparison).baseline

    assert whole is not None
    assert whole.cost is not None
    parts = [row.baseline.cost for row in residual(comparison).scopes if row.baseline and row.baseline.cost]
    if whole.cost.value > 0:
        assert sum(cost.value for cost in parts) == approx(whole.cost.value)
        assert all(0 <= cost.low <= cost.value <= cost.high for cost in parts)
    else:
        assert parts == []


def test_no_part_is_negative_where_operators_seem_to_cost_more_than_their_scope() -> None:
    side = surveyed(a_side(**BASE), {FORWARD: 0.1, SAMPLING: 0.6, INTAKE: 0.3})
    found = costs(of(side, side))[0]
    assert found[FORWARD] == 0.0
    assert sum(found.values()) == approx(6.0)
    assert found[SAMPLING] / found[INTAKE] == approx(4 / 6)


def test_a_negative_residual_has_no_parts() -> None:
    side = surveyed(a_side(residual_j=-3.0, noise=0.0), {FORWARD: 0.5, SAMPLING: 0.5})
    row = part(of(side, side), FORWARD)
    assert row.baseline is not None
    assert (row.baseline.cost, row.baseline.share, row.baseline.samples) == (None, 0.5, 5000)
    assert (row.ratio, row.excess) == (None, None)


def test_on_a_board_the_hosts_time_does_not_divide_the_energy() -> None:
    side = surveyed(a_side(**BASE, device_kind="cuda"), {FORWARD: 0.5, SAMPLING: 0.5})
    found = part(of(side, side), FORWARD).baseline
    assert found is not None
    assert found.cost is None
    assert found.duration_s == approx(0.5 * 2.0)


def test_a_side_without_a_survey_is_not_measured_and_one_not_seen_there_spends_nothing() -> None:
    one = surveyed(a_side(**BASE), {FORWARD: 0.4, SAMPLING: 0.6})
    other = surveyed(a_side(**BASE), {FORWARD: 0.4, SAMPLING: 0.4, INTAKE: 0.2})
    assert part(of(one, a_side(**BASE)), FORWARD).candidate is None

    intake = part(of(one, other), INTAKE)
    assert intake.baseline is not None
    assert intake.baseline.cost is not None
    assert (intake.baseline.cost.value, intake.baseline.samples) == (0.0, 0)
    assert intake.excess == approx(4.0)
    assert intake.ratio is None
    assert residual(of(a_side(), a_side())).scopes == ()


def test_the_largest_part_stands_first() -> None:
    side = surveyed(a_side(**BASE), {FORWARD: 0.4, SAMPLING: 0.45, INTAKE: 0.15})
    assert [row.scope for row in residual(of(side, side)).scopes] == [INTAKE, FORWARD, SAMPLING]


def test_fewer_samples_tell_less() -> None:
    def width(ticks: int) -> float:
        side = surveyed(a_side(**BASE), {FORWARD: 0.4, SAMPLING: 0.45, INTAKE: 0.15}, ticks=ticks)
        ratio = part(of(side, side), INTAKE).ratio
        assert ratio is not None
        assert ratio.low < 1 < ratio.high
        return ratio.high - ratio.low

    assert width(100) > 5 * width(10_000)


@pytest.mark.parametrize(("ticks", "told"), [(10_000, True), (20, False)])
def test_a_difference_beyond_what_sampling_may_be_wrong_is_noted_and_no_finding(
    ticks: int, told: bool
) -> None:
    one = surveyed(a_side(**BASE), {FORWARD: 0.4, SAMPLING: 0.45, INTAKE: 0.15}, ticks=ticks)
    other = surveyed(a_side(**BASE), {FORWARD: 0.45, SAMPLING: 0.5, INTAKE: 0.05}, ticks=ticks)
    comparison = of(one, other)
    notes = [note for note in comparison.notes if INTAKE in note]
    assert comparison.findings == ()
    if told:
        assert notes == [
            "in prefill the baseline spends 3.0x as much between operators on request intake (by samples)"
        ]
    else:
        assert notes == []
