"""Values that several others make up: concatenations, splits, padding, repetition."""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from graphs import Graph, Ref
from hypothesis import given, settings
from hypothesis import strategies as st
from matched import checked
from numpy.typing import NDArray

from magneton.match import match
from magneton.match.composites import MOST_PARTS, find_padded, find_parts
from magneton.match.model import Matching
from magneton.profile.model import Profile
from magneton.profile.sketches import Sketches, stack_sketches
from magneton.record.sketching import sketch_array

ROWS, WIDTH = 24, 32

Array = NDArray[np.float64]
widths = st.lists(st.integers(4, 40), min_size=2, max_size=MOST_PARTS)


def sketched(*arrays: Array) -> Sketches:
    return stack_sketches([sketch_array(array) for array in arrays])


def drawn(seed: int, sizes: Sequence[int]) -> list[Array]:
    """Weights of as many projections, as wide as asked for, all of different scale.

    Within an octave: sketches add up only where their windows of frequencies overlap.
    """
    draws = np.random.default_rng(seed)
    scales = [(1 + k / MOST_PARTS) / np.sqrt(WIDTH) for k in range(len(sizes))]
    return [draws.standard_normal((WIDTH, width)) * by for width, by in zip(sizes, scales, strict=True)]


def fused(weights: Sequence[Array]) -> Profile:
    """One projection, taken apart by views, each part put to use."""
    graph = Graph()
    x = start(graph)
    whole = graph.op("mm", np.matmul, x, graph.parameter("w", np.concatenate(weights, 1)))
    cuts = np.cumsum([w.shape[1] for w in weights])[:-1]
    parts = graph.ops("split", lambda a: np.split(a, cuts, 1), whole, effect="view")
    use(graph, parts)
    return graph.profile()


def apart(weights: Sequence[Array], *, order: Sequence[int] | None = None, joined: bool = False) -> Profile:
    """One projection for each part, computed in any ``order``; ``joined`` reads the parts as one."""
    graph = Graph()
    x = start(graph)
    parts: dict[int, Ref] = {}
    for k in range(len(weights)) if order is None else order:
        parts[k] = graph.op("mm", np.matmul, x, graph.parameter(f"w{k}", weights[k]))
    inside = [parts[k] for k in range(len(weights))]
    if joined:
        graph.op("tanh", np.tanh, graph.op("cat", lambda *a: np.concatenate(a, 1), *inside))
    else:
        use(graph, inside)
    return graph.profile()


def start(graph: Graph) -> Ref:
    x = graph.input("x", np.random.default_rng(0).standard_normal((ROWS, WIDTH)))
    return graph.op("norm", np.tanh, x)


def use(graph: Graph, parts: Sequence[Ref]) -> None:
    for k, part in enumerate(parts):
        graph.op("use", lambda a, k=k: np.cos(a * (k + 1)), part)


def composites(matching: Matching) -> list[tuple[int, int]]:
    """How many values each composite pairs with how many, of what is computed."""
    pairs = [pair for pair in matching.pairs if pair.evidence == "composite"]
    return [(len(pair.baseline), len(pair.candidate)) for pair in pairs]


@settings(max_examples=25)
@given(widths, st.integers(0, 99))
def test_a_projection_in_one_or_in_parts(sizes: list[int], seed: int):
    """Where the whole is cut by views, its parts are values, and the whole with its weights is composite."""
    weights = drawn(seed, sizes)
    baseline, candidate = fused(weights), apart(weights)
    matching = checked(baseline, candidate)
    assert not matching.only_baseline
    assert not matching.only_candidate
    assert len(matching.regions) == 2 + len(sizes)  # norm, the projections as one, each use
    assert set(composites(matching)) == {(1, len(sizes))}
    assert set(composites(match(candidate, baseline))) == {(len(sizes), 1)}


@settings(max_examples=25)
@given(widths, st.integers(0, 99), st.randoms(use_true_random=False))
def test_parts_in_any_order(sizes: list[int], seed: int, random: Random):
    """The order in which siblings are computed says nothing about where they stand in the whole."""
    weights = drawn(seed, sizes)
    order = list(range(len(sizes)))
    random.shuffle(order)
    graph = Graph()
    x = start(graph)
    whole = graph.op("mm", np.matmul, x, graph.parameter("w", np.concatenate(weights, 1)))
    graph.op("tanh", np.tanh, whole)
    matching = checked(graph.profile(), apart(weights, order=order, joined=True))
    assert not matching.only_baseline
    assert not matching.only_candidate
    assert len(matching.regions) == 3


def parts_alone(weights: Sequence[Array]) -> Profile:
    """A gated unit that never joins its halves."""
    graph = Graph()
    x = start(graph)
    halves = [graph.op("mm", np.matmul, x, graph.parameter("w", w)) for w in weights]
    graph.op("glu", glu, *halves)
    return graph.profile()


def glu(*parts: Array) -> Array:
    result = np.tanh(parts[0])
    for part in parts[1:]:
        result = result * part
    return result


@pytest.mark.parametrize("parts", range(2, MOST_PARTS + 1))
def test_parts_that_exist_on_one_side_only(parts: int):
    """The other side's operator takes the whole apart inside: no part of it is a value there."""
    weights = drawn(parts, [16] * parts)
    graph = Graph()
    x = start(graph)
    whole = graph.op("mm", np.matmul, x, graph.parameter("w", np.concatenate(weights, 1)))
    graph.op("fused_glu", lambda a: glu(*np.split(a, parts, 1)), whole)
    baseline = graph.profile()
    matching = checked(baseline, parts_alone(weights))
    found = [p for p in matching.pairs if p.evidence == "composite" and p.baseline == (whole.value_id,)]
    assert [len(p.candidate) for p in found] == [parts]
    assert len(matching.regions) == 3


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.98, -1.0]))
def test_a_wrong_third_part_is_never_accepted(seed: int, scale: float):
    """Another part of the same size and distribution, or the right one scaled or negated."""
    draws = np.random.default_rng(seed)
    q, k, v, stranger = draws.standard_normal((4, ROWS, WIDTH))
    wrong = stranger if scale == 1.0 else v * scale
    whole = np.concatenate([q, k, v], 1)
    assert find_parts(sketched(whole), 0, sketched(q, k, wrong), [0, 1, 2]) is None
    right = find_parts(sketched(whole), 0, sketched(q, wrong, k, v), [0, 1, 2, 3])
    assert right is not None
    assert sorted(right[0]) == [0, 2, 3]
    assert right[1] < 1e-9


def test_no_region_of_a_wrong_third_part():
    weights, strangers = drawn(1, [16, 16, 16]), drawn(2, [16, 16, 16])
    matching = match(fused(weights), apart([*weights[:2], strangers[2]]))
    assert composites(matching) == []


@settings(max_examples=30)
@given(st.integers(0, 99), st.integers(0, 9), st.integers(2, MOST_PARTS))
def test_the_right_parts_are_found_among_strangers(seed: int, strangers: int, parts: int):
    draws = np.random.default_rng(seed)
    values = [draws.standard_normal((ROWS, WIDTH)) for _ in range(strangers + parts)]
    chosen = sorted(draws.permutation(len(values))[:parts].tolist())
    whole = np.concatenate([values[k] for k in chosen], 1)
    found = find_parts(sketched(whole), 0, sketched(*values), range(len(values)))
    if len(values) <= 12:
        assert found is not None
        assert sorted(found[0]) == chosen


def test_parts_hold_the_masks_of_the_whole():
    """Counts of what is no number must add up exactly."""
    draws = np.random.default_rng(3)
    one, other = draws.standard_normal((2, ROWS, WIDTH))
    one[0, :5] = -np.inf
    whole = np.concatenate([one, other])
    assert find_parts(sketched(whole), 0, sketched(one, other), [0, 1]) is not None
    cleared = np.where(np.isfinite(one), one, 0.0)
    assert find_parts(sketched(whole), 0, sketched(cleared, other), [0, 1]) is None


@settings(max_examples=40)
@given(st.integers(0, 99), st.integers(1, 200), st.floats(0.1, 30))
def test_a_value_in_a_larger_room(seed: int, room: int, scale: float):
    x = np.random.default_rng(seed).standard_normal((ROWS, WIDTH)) * scale
    padded = np.concatenate([x, np.zeros((room, WIDTH))])
    found = find_padded(sketched(padded), 0, sketched(x + 1, x), [0, 1])
    if room <= 6 * ROWS:
        assert found is not None
        assert found[0] == (1,)
    else:
        assert found is None or found[0] == (1,)


def test_a_room_that_holds_anything_else_is_no_padding():
    draws = np.random.default_rng(4)
    x = draws.standard_normal((ROWS, WIDTH))
    for rest in (np.full((4, WIDTH), 1e-2), draws.standard_normal((4, WIDTH))):
        assert find_padded(sketched(np.concatenate([x, rest])), 0, sketched(x), [0]) is None


def test_a_padded_batch():
    """Rows of zeros are added before a product and cut off after it."""

    def program(padded: bool) -> Profile:
        graph = Graph()
        x = start(graph)
        if padded:
            x = graph.op("pad", lambda a: np.pad(a, ((0, 8), (0, 0))), x)
        w = graph.parameter("w", drawn(5, [WIDTH])[0])
        y = graph.op("mm", np.matmul, x, w)
        if padded:
            y = graph.view("narrow", lambda a: a[:ROWS], y)
        graph.op("cos", np.cos, y)
        return graph.profile()

    baseline, candidate = program(True), program(False)
    matching = checked(baseline, candidate)
    assert not matching.only_baseline
    assert not matching.only_candidate
    assert [(r.baseline, r.candidate) for r in matching.regions] == [
        ((0,), (0,)),
        ((1, 2, 3), (1,)),
        ((4,), (2,)),
    ]


@pytest.mark.parametrize("times", [2, 4])
def test_heads_repeated_for_their_queries(times: int):
    """Grouped queries: keys copied for each query on one side, read by one operator on the other."""

    def program(repeated: bool) -> Profile:
        graph = Graph()
        x = start(graph)
        q_w, k_w = drawn(6, [times * 8, 8])
        q = graph.op("mm", np.matmul, x, graph.parameter("q", q_w))
        k = graph.op("mm", np.matmul, x, graph.parameter("k", k_w))
        if repeated:
            k = graph.op("repeat_kv", lambda a: np.tile(a, (1, times)), k)
            graph.op("scores", lambda q, k: np.tanh(q * k), q, k)
        else:
            graph.op("grouped", lambda q, k: np.tanh(q * np.tile(k, (1, times))), q, k)
        return graph.profile()

    baseline, candidate = program(True), program(False)
    matching = checked(baseline, candidate)
    assert not matching.only_baseline
    assert len(matching.regions) == 4
    assert matching.regions[-1].baseline == (3, 4)
    assert matching.regions[-1].candidate == (3,)


def test_both_sides_repeat():
    def program(name: str) -> Profile:
        graph = Graph()
        x = start(graph)
        graph.op("use", np.cos, graph.op(name, lambda a: np.tile(a, (4, 1)), x))
        return graph.profile()

    matching = checked(program("repeat"), program("expand"))
    assert [(r.baseline, r.candidate) for r in matching.regions] == [((k,), (k,)) for k in range(3)]
