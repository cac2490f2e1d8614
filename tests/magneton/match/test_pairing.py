"""Which value pairs with which, on what evidence."""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

from collections.abc import Callable

import numpy as np
import pytest
from graphs import Graph

from magneton.match import match
from magneton.match.model import Matching, ValuePair
from magneton.profile.model import Profile

draws = np.random.default_rng(0)
x0 = draws.standard_normal((24, 32))
w0 = draws.standard_normal((32, 32)) / 6


def chain(*functions: Callable[..., np.ndarray]) -> Profile:
    graph = Graph()
    value = graph.input("x", x0)
    for k, function in enumerate(functions):
        value = graph.op(f"f{k}", function, value)
    return graph.profile()


def computed(baseline: Profile, matching: Matching) -> list[ValuePair]:
    return [p for p in matching.pairs if baseline.values[p.baseline[0]].role == "activation"]


@pytest.mark.parametrize(
    "change",
    [np.negative, lambda a: a * 1.01, lambda a: np.where(np.arange(32) < 2, 0.3, a)],
    ids=["negated", "scaled", "patched"],
)
def test_a_near_miss_does_not_pair(change: Callable[..., np.ndarray]):
    baseline = chain(np.tanh, np.cos)
    candidate = chain(lambda a: change(np.tanh(a)), lambda a: np.exp(a / 2))
    assert [p for p in computed(baseline, match(baseline, candidate)) if p.evidence == "value"] == []


def test_low_precision_still_pairs():
    def rough(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        return lambda a: function(a).astype(np.float16)

    baseline, candidate = chain(np.tanh, np.cos, np.exp), chain(*map(rough, (np.tanh, np.cos, np.exp)))
    matching = match(baseline, candidate)
    assert [(p.baseline, p.candidate) for p in matching.pairs] == [((k,), (k,)) for k in range(4)]


def test_near_duplicates_pair_in_order():
    def drift(a: np.ndarray) -> np.ndarray:
        return a + 2e-5 * np.sin(40 * a)

    def noisy(a: np.ndarray) -> np.ndarray:
        return drift(a) + 1e-5 * np.cos(90 * a)

    baseline, candidate = chain(np.tanh, *[drift] * 5), chain(np.tanh, *[noisy] * 5)
    matching = match(baseline, candidate)
    assert all(p.baseline == p.candidate for p in matching.pairs)
    assert len(matching.regions) == 6


def test_equal_layers_with_equal_weights_pair_in_order():
    def layers() -> Profile:
        graph = Graph()
        value = graph.input("x", x0)
        for _ in range(6):
            value = graph.op("layer", lambda a, w: np.tanh(a @ w), value, graph.parameter("w", w0))
        return graph.profile()

    matching = match(layers(), layers())
    assert [(r.baseline, r.candidate) for r in matching.regions] == [((k,), (k,)) for k in range(6)]
    assert [len(group.regions) for group in matching.groups] == [6]


def test_masks_do_not_pair_by_their_look_alone():
    def masked(turn: bool) -> Profile:
        graph = Graph()
        x = graph.input("x", x0)
        positive = graph.op("gt", lambda a: (a > 0) * 1.0, x)
        negative = graph.op("lt", lambda a: (a < 0) * 1.0, graph.op("sin", np.sin, x))
        first, second = (negative, positive) if turn else (positive, negative)
        graph.op("sum", lambda a, b: a * 2 + b * np.arange(32), first, second)
        return graph.profile()

    baseline = masked(False)
    assert all(p.evidence != "value" for p in computed(baseline, match(baseline, masked(True))) if p.distance)


def test_context_pairs_scalars_by_what_they_are_computed_from():
    def statistics(pieces: bool) -> Profile:
        graph = Graph()
        x = graph.input("x", x0)
        for function in (np.cos, np.exp):
            y = graph.op("f", function, x)
            square = graph.op("square", np.square, y)
            if pieces:
                graph.op("div", lambda a: a / x0.size, graph.op("sum", np.sum, square))
            else:
                graph.op("mean", np.mean, square)
        return graph.profile()

    baseline, candidate = statistics(True), statistics(False)
    matching = match(baseline, candidate)
    means = [p for p in matching.pairs if p.evidence == "context"]
    assert len(means) == 2
    assert all(
        np.isclose(baseline.sketches.rms[p.baseline[0]], candidate.sketches.rms[p.candidate[0]])
        for p in means
    )


def test_sketches_of_nothing_pair_nothing():
    baseline = chain(np.tanh)
    candidate = Graph()
    other = candidate.input("x", x0)
    candidate.ops("opaque", lambda a: (np.tanh(a),), other, sketched=False)
    matching = match(baseline, candidate.profile())
    assert [p for p in computed(baseline, matching) if p.evidence != "output"] == []
