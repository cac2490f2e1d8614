"""Values that are equal by coincidence: norms do not see by how much their input is scaled."""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

from typing import Literal

import numpy as np
import pytest
from graphs import Graph, Ref
from numpy.typing import NDArray
from soundness import unsound

from magneton.match import match
from magneton.profile.model import Profile

Style = Literal["whole", "pieces"]


def two_norms(first: Style, second: Style) -> Profile:
    """Of x and of 2 x, each with a gain of its own."""
    draws, graph = np.random.default_rng(3), Graph()
    x = graph.input("x", draws.standard_normal((12, 16)))
    doubled = graph.op("double", lambda a: 2 * a, x)
    both: tuple[tuple[Style, Ref], ...] = ((first, x), (second, doubled))
    for style, read in both:
        normed(graph, read, graph.parameter("g", np.exp(draws.standard_normal(16) / 4)), style)
    return graph.profile()


def normed(graph: Graph, x: Ref, gain: Ref, style: Style) -> Ref:
    if style == "whole":
        return graph.op("rms_norm", lambda a, g: a * scale(a) * g, x, gain)
    return graph.op("gain", np.multiply, graph.op("mul", lambda a: a * scale(a), x), gain)


def scale(a: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / np.sqrt(np.square(a).mean(-1, keepdims=True))


@pytest.mark.parametrize("first", ["whole", "pieces"])
@pytest.mark.parametrize("second", ["whole", "pieces"])
@pytest.mark.parametrize("others", [("whole", "pieces"), ("pieces", "whole"), ("pieces", "pieces")])
def test_each_norm_pairs_with_its_own(first: Style, second: Style, others: tuple[Style, Style]):
    baseline, candidate = two_norms(first, second), two_norms(*others)
    matching = match(baseline, candidate)
    assert unsound(baseline, candidate, matching) == []
    assert not matching.only_baseline
    assert not matching.only_candidate
    ends = [baseline.operators[region.baseline[-1]].name for region in matching.regions]
    assert {"gain", "rms_norm"} & set(ends)
    for region in matching.regions:
        last_x, last_y = region.baseline[-1], region.candidate[-1]
        made = baseline.operators[last_x].outputs[0], candidate.operators[last_y].outputs[0]
        np.testing.assert_allclose(
            baseline.sketches.cos_sum[made[0]], candidate.sketches.cos_sum[made[1]], rtol=1e-3, atol=1e-3
        )
