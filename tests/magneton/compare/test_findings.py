from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparisons import ATTENTION, MLP, a_side, matched, with_readings_lost
from hypothesis import given, settings
from hypothesis import strategies as st

from magneton.compare.model import Comparison, Criteria
from magneton.compare.profiles import compare
from magneton.profile.model import Profile

BASE = (1.0, 0.5, 2.0)


def of(baseline: Profile, candidate: Profile, *, left: tuple[str, ...] = (), **criteria: Any) -> Comparison:
    return compare(baseline, candidate, matched(baseline, candidate, left=left), Criteria(**criteria))


@settings(max_examples=25)
@given(st.tuples(*[st.floats(1e-3, 10)] * 3), st.floats(0, 0.3), st.integers(0, 50))
def test_a_profile_against_itself_has_no_finding(costs: tuple[float, ...], noise: float, seed: int) -> None:
    profile = a_side(costs, noise=noise / 3, seed=seed)

    comparison = of(profile, profile)

    assert comparison.findings == ()
    assert comparison.verdict == "no difference"


def test_noise_alone_is_no_waste() -> None:
    pairs = (
        (a_side(BASE, noise=0.05, seed=seed), a_side(BASE, noise=0.05, seed=seed + 100)) for seed in range(40)
    )

    outcomes = [finding.outcome for one, other in pairs for finding in of(one, other).findings]

    assert "waste" not in outcomes
    assert "trade-off" not in outcomes


def test_waste_is_found_on_the_costly_side_with_its_amount() -> None:
    comparison = of(a_side((2.0, 0.5, 2.0), seed=1), a_side(BASE, seed=2))
    (finding,) = comparison.findings

    assert comparison.verdict == "findings"
    assert (finding.outcome, finding.costly) == ("waste", "baseline")
    assert finding.excess == pytest.approx(4.0, rel=0.05)
    assert finding.excess_share == pytest.approx(4.0 / 19.0, rel=0.05)
    assert finding.ratio is not None
    assert finding.ratio.low > 1.1
    assert finding.ratio.value == pytest.approx(2.5 / 1.5, rel=0.05)
    assert not finding.confirmed


def test_the_other_way_round_it_is_the_candidates() -> None:
    (finding,) = of(a_side(BASE, seed=2), a_side((2.0, 0.5, 2.0), seed=1)).findings

    assert finding.costly == "candidate"
    assert finding.ratio is not None
    assert finding.ratio.value == pytest.approx(2.5 / 1.5, rel=0.05)


def test_a_difference_below_the_threshold_is_none() -> None:
    comparison = of(a_side((1.0, 0.5, 2.1), noise=0.001, seed=1), a_side(BASE, noise=0.001, seed=2))

    assert comparison.verdict == "no difference"


def test_an_interval_across_the_threshold_is_unresolved() -> None:
    comparison = of(a_side((1.0, 0.5, 2.2), noise=0.1, seed=1), a_side(BASE, noise=0.1, seed=2))

    assert comparison.verdict == "unresolved"
    assert {finding.outcome for finding in comparison.findings} == {"unresolved"}


def test_an_excess_below_the_smallest_share_does_not_count() -> None:
    baseline, candidate = a_side((1.0, 0.5, 0.02), seed=1), a_side((1.0, 0.5, 0.01), seed=1)

    assert of(baseline, candidate, min_share=0.02).findings == ()
    assert of(baseline, candidate, min_share=0.001).findings != ()


def test_one_round_has_no_spread_and_settles_nothing() -> None:
    comparison = of(a_side((2.0, 0.5, 2.0), rounds=1), a_side(BASE, rounds=1))

    assert comparison.verdict == "unresolved"
    assert all(finding.outcome == "unresolved" for finding in comparison.findings)


def test_one_round_that_looks_alike_settles_nothing_either() -> None:
    comparison = of(a_side(BASE, rounds=1), a_side(BASE, rounds=1))

    assert comparison.verdict == "unresolved"
    assert "has one reading of a whole step on both sides" in comparison.reason


def test_totals_whose_interval_spans_the_threshold_are_not_said_to_agree() -> None:
    baseline, candidate = a_side(BASE, noise=0.0), a_side(BASE, noise=0.0)
    swing = tuple(
        replace(b, energy_j=(b.energy_j or 0.0) * (0.8, 1.25, 1.0)[b.round % 3]) for b in baseline.blocks
    )

    comparison = of(replace(baseline, blocks=swing), candidate)

    assert comparison.verdict == "unresolved"
    assert "the totals of phase prefill may differ by more than 10 %" in comparison.reason


def test_totals_alike_do_not_vouch_for_places_without_a_reading() -> None:
    lost = tuple(replace(r, energy_j=None, gap="the board was lost") for r in a_side(BASE).replays)

    comparison = of(a_side(BASE), replace(a_side(BASE), replays=lost))

    assert comparison.verdict == "unresolved"
    assert comparison.reason == "2 places of phase prefill that matter have no reading to compare"


def test_a_small_place_without_a_reading_leaves_the_verdict() -> None:
    baseline, candidate = a_side((1.0, 0.5, 0.01)), a_side((1.0, 0.5, 0.01))

    assert of(baseline, with_readings_lost(candidate, 2)).verdict == "no difference"


def test_operators_without_a_reading_are_not_said_to_cost_nothing() -> None:
    unread = replace(a_side(BASE), replays=())
    notes = of(unread, a_side(BASE, seed=2)).notes

    assert [note for note in notes if note.startswith("no operator of prefill on the baseline's side has a")]
    assert not [note for note in notes if "account for 0%" in note]


def with_durations(profile: Profile, factor: float, noise: float = 0.0) -> Profile:
    """Replay of every operator takes ``factor`` times as long."""
    random = np.random.default_rng(3)
    return replace(
        profile,
        replays=tuple(
            replace(r, duration_s=r.duration_s * factor * (1 + noise * random.standard_normal()))
            for r in profile.replays
        ),
    )


def test_slower_but_leaner_is_a_trade_off() -> None:
    slow = with_durations(a_side(BASE, seed=2), 3.0)

    (finding,) = of(a_side((2.0, 0.5, 2.0), seed=1), slow).findings

    assert finding.outcome == "trade-off"
    assert finding.duration_ratio is not None
    assert finding.duration_ratio.low > 1.01


def test_noise_in_the_time_makes_no_trade_off() -> None:
    costly = a_side((2.0, 0.5, 2.0), seed=1)
    lean = replace(
        a_side(BASE, seed=2),
        replays=tuple(
            replace(r, duration_s=c.duration_s)
            for r, c in zip(a_side(BASE, seed=2).replays, costly.replays, strict=True)
        ),
    )

    (finding,) = of(costly, with_durations(lean, 1.02, noise=0.1)).findings

    assert finding.outcome == "waste"


def test_little_without_a_reading_does_not_hide_much_waste() -> None:
    candidate = with_readings_lost(a_side((1.0, 0.05, 2.0), seed=2), key=1)

    (finding,) = of(a_side((3.0, 0.05, 2.0), seed=1), candidate).findings

    assert finding.outcome == "waste"


def test_a_lean_side_without_readings_proves_nothing() -> None:
    candidate = with_readings_lost(a_side(BASE, seed=2), key=0)

    (finding,) = of(a_side((1.0, 0.6, 2.0), seed=1), candidate).findings

    assert finding.outcome == "unresolved"
    assert "no reading" in finding.note


def test_work_that_only_one_side_does_is_redundant() -> None:
    baseline = a_side((1.0, 0.5, 2.0, 1.0), layer=(*ATTENTION, *MLP, ("mlp", "aten.clone.default", 22)))

    comparison = of(baseline, a_side(BASE), left=("aten.clone.default",))
    (finding,) = comparison.findings

    assert (finding.outcome, finding.kind, finding.costly) == ("waste", "redundant", "baseline")
    assert finding.ratio is None
    assert comparison.rows[finding.row].kind == "leftover"


def test_work_without_a_partner_on_both_sides_may_be_the_same_work() -> None:
    comparison = of(a_side(), a_side(), left=("aten.mm.default",))

    assert comparison.verdict == "unresolved"
    assert all("without a partner" in finding.note for finding in comparison.findings)


@pytest.mark.parametrize(
    ("baseline", "candidate", "kind"),
    [
        ({"options": {"attn": "eager"}}, {"options": {"attn": "sdpa"}}, "misconfiguration"),
        ({"flags": {"tf32": "True"}}, {"flags": {"tf32": "False"}}, "misconfiguration"),
        ({"system": "torch"}, {"system": "transformers"}, "unclassified"),
        ({"versions": {"torch": "2.5"}}, {"versions": {"torch": "2.6"}}, "unclassified"),
        (
            {"system": "callable", "options": {"path": "a.py"}},
            {"system": "callable", "options": {"path": "b.py"}},
            "unclassified",
        ),
    ],
)
def test_a_kind_needs_evidence(baseline: dict[str, Any], candidate: dict[str, Any], kind: str) -> None:
    (finding,) = of(a_side((2.0, 0.5, 2.0), seed=1, **baseline), a_side(BASE, seed=2, **candidate)).findings

    assert finding.kind == kind
    assert finding.kind_reason


def test_more_of_the_same_calls_is_redundant_and_other_calls_are_misuse() -> None:
    twice = a_side((1.0, 0.5, 1.0, 2.0), layer=(*ATTENTION, ATTENTION[0], *MLP), system="one")
    fused = a_side((0.5, 2.0), layer=(("self_attn", "aten.sdpa.default", 5), *MLP), system="two")

    (redundant,) = of(twice, a_side(BASE, seed=2, system="other")).findings
    (misuse,) = of(a_side(BASE, seed=2, system="one"), fused).findings

    assert redundant.kind == "redundant"
    assert misuse.kind == "api misuse"


def test_between_two_systems_an_option_that_was_set_or_a_flag_of_both_may_be_a_cause() -> None:
    (finding,) = of(
        a_side((2.0, 0.5, 2.0), seed=1, system="one", flags={"tf32": "1", "mine": "x"}, options={"o": "1"}),
        a_side(BASE, seed=2, system="two", flags={"tf32": "0"}),
    ).findings

    assert {cause.name for cause in finding.causes} == {"o", "tf32"}


def test_other_outputs_leave_no_finding_and_name_the_output() -> None:
    baseline = a_side((2.0, 0.5, 2.0))
    candidate = a_side(BASE)
    swapped = replace(candidate, outputs={name: array[::-1] for name, array in candidate.outputs.items()})

    comparison = of(baseline, swapped)

    assert comparison.verdict == "not the same work"
    assert comparison.findings == ()
    assert "prefill.logits" in comparison.reason


def test_totals_that_no_operator_explains_are_unresolved() -> None:
    comparison = of(a_side(residual_j=10.0), a_side(residual_j=1.0))

    assert comparison.verdict == "unresolved"
    assert "not attributed" in comparison.reason


def test_without_declared_outputs_nothing_is_certain() -> None:
    profile = replace(a_side(), outputs={})

    assert of(profile, profile).verdict == "unresolved"
