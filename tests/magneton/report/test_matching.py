"""What a matching comes to, in figures and in text."""

import io

import numpy as np
import pytest
from graphs import Graph
from hypothesis import given, settings
from profiles import profiles
from rich.cells import cell_len
from two_attentions import attention

from magneton.match import match
from magneton.match.model import SideName
from magneton.profile.model import OpId, Profile
from magneton.report.console import console_for
from magneton.report.explained import explain
from magneton.report.explained_text import print_explained
from magneton.report.matching import MatchingSummary, summarise_matching
from magneton.report.matching_text import print_matching

STEPS, FUSED = attention(fused=False), attention(fused=True)


def summarised(baseline: Profile, candidate: Profile) -> MatchingSummary:
    return summarise_matching(baseline, candidate, match(baseline, candidate))


def printed(summary: MatchingSummary, width: int = 80, top: int = 10) -> str:
    stream = io.StringIO()
    print_matching(summary, console_for(stream, width), top=top)
    return stream.getvalue()


def explained(baseline: Profile, candidate: Profile, side: SideName, at: int, width: int = 80) -> str:
    stream = io.StringIO()
    found = explain(baseline, candidate, match(baseline, candidate), "it", [(side, OpId(at))])
    print_explained(found, console_for(stream, width))
    return stream.getvalue()


def test_operators_of_either_side_add_up() -> None:
    summary = summarised(STEPS, FUSED)
    (phase,) = summary.phases

    assert phase.baseline == len(STEPS.operators)
    assert phase.baseline_paired == sum(ground.baseline for ground in phase.grounds)
    left = sum(each.operators for each in summary.leftovers if each.side == "baseline")
    assert phase.baseline_paired + left == phase.baseline
    assert phase.candidate_paired == phase.candidate == len(FUSED.operators)
    assert phase.regions == sum(len(group.regions) for group in summary.groups)


def test_a_group_counts_one_of_its_regions() -> None:
    groups = summarised(STEPS, FUSED).groups
    (mixing,) = (group for group in groups if len(group.baseline_operators) == 4)

    assert len(mixing.regions) == 2
    assert (len(mixing.candidate_operators), mixing.produces, mixing.consumes) == (1, 1, 3)
    assert mixing.baseline.module_path == "layers.0-1.attention"


def test_one_phase_only() -> None:
    matching = match(STEPS, FUSED)

    assert summarise_matching(STEPS, FUSED, matching, "prefill").groups
    assert summarise_matching(STEPS, FUSED, matching, "decode").groups == ()


def test_top_bounds_the_regions_and_says_so() -> None:
    text = printed(summarised(STEPS, FUSED), top=1)

    assert "more kinds of regions: --top shows them" in text
    assert text.count("layers.0-1.attention") == 1


@pytest.mark.parametrize(
    ("side", "name", "needed"),
    [
        ("baseline", "aten.mv", ["It computes what the other side has too", "nothing else is that near"]),
        ("baseline", "aten.bmm", ["All that reads its results lies in one region", "not paired: "]),
        ("baseline", "aten.ones", ["It is left over", "no set-up of the other side", "serves 2"]),
        ("candidate", "aten.sdpa", ["one of 2 equal ones", "baseline:7 aten._softmax"]),
    ],
)
def test_reasons_in_words(side: SideName, name: str, needed: list[str]) -> None:
    profile = STEPS if side == "baseline" else FUSED
    at = next(op.op_id for op in profile.operators if op.name == name)
    text = " ".join(explained(STEPS, FUSED, side, at).split())

    for each in needed:
        assert each in text


def test_top_bounds_every_list_of_an_explanation() -> None:
    graph = Graph()
    parts = [graph.input(f"x{k}", np.full(4, float(k))) for k in range(5)]
    graph.ops("split", lambda *arrays: arrays, *parts)
    profile, stream = graph.profile(), io.StringIO()
    found = explain(profile, profile, match(profile, profile), "it", [("baseline", OpId(0))])
    print_explained(found, console_for(stream, 80), top=2)

    assert "3 more results: --top shows them" in stream.getvalue()
    assert stream.getvalue().count("\nreads ") == 3


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_every_id_in_an_explanation_is_mentioned(side: SideName) -> None:
    matching = match(STEPS, FUSED)
    for op in (STEPS if side == "baseline" else FUSED).operators:
        found = explain(STEPS, FUSED, matching, "it", [(side, op.op_id)])
        operators = {(each.side, each.op_id) for each in found.mentioned_operators}
        values = {(each.side, each.value_id) for each in found.mentioned_values}
        why = found.explanation
        assert why is not None
        pairs = [*why.reaches, *(each.pair for each in (*why.reads, *why.writes))]
        if why.region is not None:
            pairs += (*why.region.produces, *why.region.consumes)
            assert {("baseline", each) for each in why.region.baseline} <= operators
            assert {("candidate", each) for each in why.region.candidate} <= operators
        for pair in filter(None, pairs):
            assert {("baseline", each) for each in pair.baseline} <= values
            assert {("candidate", each) for each in pair.candidate} <= values
        other = "candidate" if side == "baseline" else "baseline"
        rivals = [rival for each in why.writes for rival in each.recognition.rivals]
        assert {(other, rival.value) for rival in rivals} <= values
        assert {(side, each) for rival in rivals for each in rival.taken} <= values


@settings(max_examples=15, deadline=None)
@given(profiles(), profiles())
def test_any_two_profiles_can_be_shown_and_explained(baseline: Profile, candidate: Profile) -> None:
    for width in (80, 160):
        text = printed(summarised(baseline, candidate), width)
        if baseline.operators:
            text += explained(baseline, candidate, "baseline", len(baseline.operators) - 1, width)
        assert max(map(cell_len, text.splitlines())) <= width
        assert "\x1b" not in text
