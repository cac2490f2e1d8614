"""Why an operator is where it is: every answer must agree with the matching and with the sketches."""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from graphs import Graph, Ref
from hypothesis import given, settings
from profiles import profiles
from two_attentions import attention

from magneton.match import distance, match
from magneton.match.distance import FEWEST_DISTINCT
from magneton.match.explanation import Explanation, explain_operator
from magneton.match.model import Matching, SideName
from magneton.match.recognition import Recognition
from magneton.profile.model import OpId, Profile

draws = np.random.default_rng(0)
x0 = draws.standard_normal((24, 32))
STEPS, FUSED = attention(fused=False), attention(fused=True)


def chain(*functions: Callable[..., np.ndarray]) -> Profile:
    graph = Graph()
    value = graph.input("x", x0)
    for function in functions:
        value = graph.op("f", function, value)
    return graph.profile()


def explain(baseline: Profile, candidate: Profile, at: int, side: SideName = "baseline") -> Explanation:
    return explain_operator(baseline, candidate, match(baseline, candidate), side, OpId(at))


def written(explanation: Explanation) -> Recognition:
    (only,) = explanation.writes
    return only.recognition


def at(profile: Profile, name: str) -> int:
    return next(op.op_id for op in profile.operators if op.name == name)


def all_explained(
    baseline: Profile, candidate: Profile, matching: Matching
) -> Iterator[tuple[SideName, Explanation]]:
    sides: tuple[tuple[SideName, Profile], ...] = (("baseline", baseline), ("candidate", candidate))
    for side, profile in sides:
        for op in profile.operators:
            yield side, explain_operator(baseline, candidate, matching, side, op.op_id)


@pytest.mark.parametrize(("baseline", "candidate"), [(STEPS, FUSED), (FUSED, STEPS), (STEPS, STEPS)])
def test_every_explanation_agrees_with_the_matching(baseline: Profile, candidate: Profile):
    matching = match(baseline, candidate)
    for side, explained in all_explained(baseline, candidate, matching):
        agrees_with(matching, side, explained)
        if explained.why == "computes":
            assert explained.region is not None
            assert set(explained.reaches) <= set(explained.region.produces)
            assert explained.reaches
        for output in explained.writes:
            judges_by_distance(output.recognition)
            assert (output.pair is not None) == (output.recognition.verdict == "paired")


def agrees_with(matching: Matching, side: SideName, explained: Explanation) -> None:
    only = matching.only_baseline if side == "baseline" else matching.only_candidate
    left = {leftover.op_id: leftover.reason for leftover in only}
    assert explained.leftover == left.get(explained.op_id)
    assert (explained.region is None) == (explained.op_id in left)
    if explained.region is not None:
        region = matching.regions[explained.region.number]
        assert explained.op_id in (region.baseline if side == "baseline" else region.candidate)
        assert explained.region.produces == tuple(matching.pairs[k] for k in region.produces)


def judges_by_distance(recognition: Recognition) -> None:
    assert [r.distance for r in recognition.rivals] == sorted(r.distance for r in recognition.rivals)
    for rival in recognition.rivals:
        assert rival.allowed >= recognition.limit
        if rival.fate != "paired":
            near = rival.distance <= recognition.limit
            assert near == (rival.fate in ("open", "taken", "second"))
            assert (near or rival.distance <= rival.allowed) == (
                rival.fate not in ("too-far", "other-counts")
            )
    if recognition.verdict == "too-far":
        assert recognition.within == 0
        assert recognition.limit < recognition.rivals[0].distance < np.inf


@settings(max_examples=20, deadline=None)
@given(profiles(), profiles())
def test_any_operator_of_any_profiles_can_be_explained(baseline: Profile, candidate: Profile):
    matching = match(baseline, candidate)
    for side, explained in all_explained(baseline, candidate, matching):
        agrees_with(matching, side, explained)


def test_an_operator_that_computes_a_common_value():
    explained = explain(STEPS, FUSED, at(STEPS, "aten.mv"))
    assert explained.why == "computes"
    (reached,) = explained.reaches
    assert reached.candidate == FUSED.operators[at(FUSED, "aten.sdpa")].outputs
    (paired,) = (rival for rival in written(explained).rivals if rival.fate == "paired")
    assert paired.value == reached.candidate[0]
    assert paired.distance == reached.distance
    assert explained.region is not None
    assert (explained.region.times, explained.region.ground) == (2, "value")


def test_an_operator_on_the_way_to_a_common_value():
    explained = explain(STEPS, FUSED, at(STEPS, "aten._softmax.default"))
    assert explained.why == "reaches-one"
    assert [pair.baseline for pair in explained.reaches] == [STEPS.operators[at(STEPS, "aten.mv")].outputs]
    assert written(explained).verdict in ("too-far", "nothing-comparable")


def test_reads_name_the_pair_or_none():
    reads = explain(STEPS, FUSED, at(STEPS, "aten.masked")).reads
    assert [read.pair for read in reads] == [None, None]
    assert all(read.pair is not None for read in explain(STEPS, FUSED, at(STEPS, "aten.bmm")).reads)


def test_setup_of_one_side_says_how_many_regions_it_serves():
    explained = explain(STEPS, FUSED, at(STEPS, "aten.fill"))
    assert (explained.why, explained.leftover, explained.serves) == ("serves-several", "setup", 2)
    assert not explained.ready


def test_what_the_other_side_has_ready():
    def scaled(folded: bool) -> Profile:
        graph, w = Graph(), draws_of(3).standard_normal((32, 32))
        weight = graph.parameter("w", w * 2 if folded else w)
        used = weight if folded else graph.op("mul", lambda a: a * 2, weight)
        graph.op("exp", np.exp, graph.op("mm", lambda a, w: np.tanh(a @ w), graph.input("x", x0), used))
        return graph.profile()

    explained = explain(scaled(False), scaled(True), 0)
    assert (explained.leftover, explained.ready) == ("setup", True)


def draws_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_value_that_is_too_far_says_how_far():
    baseline, candidate = chain(np.tanh), chain(lambda a: np.tanh(a) * 1.02)
    recognition = written(explain(baseline, candidate, 0))
    apart = distance(baseline.sketches, 1, candidate.sketches, 1)
    assert recognition.verdict == "too-far"
    assert (1, apart, "too-far") in [(r.value, r.distance, r.fate) for r in recognition.rivals]


def test_other_counts_of_nan_are_told():
    def holed(holes: int) -> Profile:
        return chain(lambda a: np.where(np.arange(a.size).reshape(a.shape) < holes, np.nan, np.tanh(a)))

    recognition = written(explain(holed(3), holed(5), 0))
    assert recognition.verdict == "nothing-comparable"
    assert ("nan",) in [rival.differs for rival in recognition.rivals]


def drifting(profile: Profile, drift: float) -> Profile:
    return replace(profile, values=tuple(replace(value, drift=drift) for value in profile.values))


def test_what_rounding_moves_far_is_paired_by_its_neighbours():
    rough = chain(lambda a: np.tanh(a) * 1.01, lambda a: np.cos(a) * 1.01)
    explained = explain(drifting(chain(np.tanh, np.cos), 5e-3), rough, 0)
    (output,) = explained.writes
    assert output.pair is not None
    assert output.pair.evidence == "context"
    (paired,) = (rival for rival in output.recognition.rivals if rival.fate == "paired")
    assert output.recognition.limit < paired.distance <= paired.allowed == pytest.approx(2e-2)


def test_what_rounding_moves_far_needs_neighbours_that_agree():
    graph = Graph()
    x = graph.input("x", x0)
    for off in (1.01, 1.012):
        graph.op("f", lambda a, off=off: np.tanh(a) * off, x)
    recognition = written(explain(drifting(chain(np.tanh), 5e-3), graph.profile(), 0))
    assert recognition.verdict == "unconfirmed"
    assert [rival.fate for rival in recognition.rivals[:2]] == ["drifted", "drifted"]


def test_two_rivals_that_nothing_tells_apart_are_ambiguous():
    graph = Graph()
    x = graph.input("x", x0)
    for off in (1e-4, -1e-4):
        graph.op("f", lambda a, off=off: np.tanh(a) * (1 + off), x)
    baseline, candidate = chain(np.tanh), graph.profile()
    recognition = written(explain(baseline, candidate, 0))
    assert recognition.verdict == "ambiguous"
    assert (recognition.within, [rival.fate for rival in recognition.rivals[:2]]) == (2, ["open", "open"])


def test_a_rival_that_another_value_took_is_named():
    graph = Graph()
    x = graph.input("x", x0)
    near = graph.op("f", np.tanh, x)
    graph.op("g", lambda a: np.tanh(a) * (1 + 1e-4), x)
    baseline, candidate = graph.profile(), chain(np.tanh)
    recognition = written(explain(baseline, candidate, 1))
    assert recognition.verdict == "taken"
    assert [(rival.fate, rival.taken) for rival in recognition.rivals[:1]] == [("taken", (near.value_id,))]


def test_an_equal_value_that_is_computed_from_something_else_is_a_stray():
    def norms(fused: bool) -> Profile:
        graph = Graph()
        x = graph.input("x", x0)
        graph.op("cumsum", lambda a: a.cumsum(0), graph.op("norm", _normed, x))
        twice = graph.op("square", np.square, x)
        double = graph.op("double", lambda a, b: 2 * a + 0 * b, x, twice)
        if fused:
            graph.op("fused", lambda a: np.cos(_normed(a)), double)
        else:
            graph.op("cos", np.cos, graph.op("norm", _normed, double))
        return graph.profile()

    baseline, candidate = norms(False), norms(True)
    recognition = written(explain(baseline, candidate, 4))
    assert baseline.operators[4].name == "norm"
    assert (recognition.verdict, recognition.pair) == ("stray", None)


def _normed(a: np.ndarray) -> np.ndarray:
    return a / np.sqrt(np.square(a).mean(-1, keepdims=True))


def test_what_would_close_a_circle_was_dropped():
    first, *between, last = (draws_of(k).standard_normal((24, 32)) for k in range(10, 18))
    forwards, turned = (
        chain(*(lambda _, made=made: made for made in order))
        for order in ((first, *between, last), (last, first, *between))
    )
    explanations = [explain(forwards, turned, k) for k in range(len(forwards.operators))]
    dropped = [why for why in explanations if written(why).verdict == "dropped"]
    assert 1 <= len(dropped) < len(explanations)
    assert all(written(why).rivals[0].distance == 0.0 for why in dropped)
    assert all(why.why != "computes" for why in dropped)


def test_few_different_numbers_are_low_entropy():
    recognition = written(explain(STEPS, FUSED, at(STEPS, "aten.ones")))
    assert recognition.verdict == "low-entropy"
    assert recognition.distinct < FEWEST_DISTINCT


def test_a_whole_is_paired_with_its_parts():
    def projected(fused: bool) -> Profile:
        graph, weights = Graph(), draws_of(5).standard_normal((2, 32, 32)) / 6
        x = graph.input("x", x0)
        if fused:
            w = graph.parameter("w", np.concatenate(list(weights), 1))
            one, other = graph.ops("chunk", lambda a: np.split(a, 2, -1), graph.op("mm", np.matmul, x, w))
        else:
            one, other = (graph.op("mm", np.matmul, x, graph.parameter("w", w)) for w in weights)
        graph.op("mix", lambda a, b: np.tanh(a * b), one, other)
        return graph.profile()

    baseline = projected(True)
    explained = explain(baseline, projected(False), 0)
    (output,) = explained.writes
    assert output.pair is not None
    assert output.pair.evidence == "composite"
    assert len(output.pair.candidate) == 2


def test_a_layout_names_what_it_was_laid_out_from():
    graph = Graph()
    h = graph.op("tanh", np.tanh, graph.input("x", x0))
    graph.op("cumsum", lambda a: a.cumsum(0), graph.view("flat", np.ravel, h))
    profile = graph.profile()
    recognition = written(explain(profile, profile, 1))
    assert (recognition.root, recognition.class_size, recognition.verdict) == (h.value_id, 2, "paired")


def test_memory_without_content_is_no_value():
    graph = Graph()
    graph.ops("empty", lambda: (np.zeros(3),), effect="alloc")
    graph.op("tanh", np.tanh, graph.input("x", x0))
    explained = explain(graph.profile(), chain(np.tanh), 0)
    assert (written(explained).verdict, explained.leftover) == ("no-content", "alloc")


def _ends(extra: Callable[[Graph, Ref], object]) -> Profile:
    graph = Graph()
    h = graph.op("tanh", np.tanh, graph.input("x", x0))
    extra(graph, h)
    graph.op("exp", np.exp, h)
    return graph.profile()


def test_a_dead_result_is_a_sink_that_does_not_end_the_phase():
    dead = explain(_ends(lambda graph, h: graph.op("sin", np.sin, h)), chain(np.tanh, np.exp), 1)
    assert (dead.leftover, dead.why) == ("dead", "reaches-nothing")
    assert dead.sink is not None
    assert (dead.sink.operators, dead.sink.last, dead.sink.counterparts) == ((1,), False, ())
    assert [pair.evidence for pair in dead.sink.consumes] == ["value"]


def test_sinks_that_read_the_same_are_counterparts():
    def synced(function: Callable[..., np.ndarray]) -> Profile:
        return _ends(lambda graph, h: graph.sync("item", graph.op("max", function, h)))

    explained = explain(synced(lambda a: a.max()), synced(lambda a: a.max()), 2)
    assert explained.sink is not None
    assert explained.sink.syncs
    assert explained.region is not None
    assert explained.region.ground == "consumes"


def test_a_write_into_a_cache_belongs_to_its_reader():
    def cached(in_place: bool) -> Profile:
        draws, graph = draws_of(3), Graph()
        past, room = draws.standard_normal((8, 32)), np.zeros((16, 32))
        room[:8] = past
        key = graph.op("tanh", np.tanh, graph.input("new", draws.standard_normal((4, 32))))
        if in_place:
            written = graph.write("copy_", _into_rows_8_to_12, graph.buffer("cache", room), key)
            keys = graph.view("narrow", lambda a: a[:12], written)
        else:
            keys = graph.op("cat", lambda a, b: np.concatenate([a, b]), graph.buffer("past", past), key)
        graph.op("cumsum", lambda a: a.cumsum(0), keys)
        return graph.profile()

    baseline, candidate = cached(True), cached(False)
    explained = explain(baseline, candidate, at(baseline, "copy_"))
    assert explained.region is not None
    assert [candidate.operators[op].name for op in explained.region.candidate] == ["cat"]


def _into_rows_8_to_12(cache: np.ndarray, rows: np.ndarray) -> np.ndarray:
    cache[8:12] = rows
    return cache
