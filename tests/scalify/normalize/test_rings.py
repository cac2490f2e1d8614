"""What ranks pass on in a ring is put together along the rank."""

import numpy as np
import pytest
from lowered_values import Leaves, NodeBlocks
from scalify_cases import Program

from scalify.ir.evaluate import evaluate
from scalify.normalize.lower import as_leaves, lower
from scalify.normalize.meaning import Values
from scalify.normalize.terms import Terms


@pytest.mark.parametrize(("dp", "cp"), [(1, 3), (1, 4), (1, 6), (2, 4), (3, 3)])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_a_ring_means_what_it_passes_on(dp: int, cp: int, step: int) -> None:
    p = Program(dp=dp, cp=cp)
    x = p.input("x", "f32", (2, 3))
    pairs = tuple(
        (cp * row + place, cp * row + (place + step) % cp) for row in range(dp) for place in range(cp)
    )
    passed = p.add("permute", p.add("add", x, p.place_on("cp")), pairs=pairs)
    p.output("y", p.over_ranks(p.add("mul", passed, x), "cp"))
    graph = p.graph()
    held = np.random.default_rng(0).normal(size=(dp * cp, 2, 3))
    terms = Terms()
    lowered = lower(graph.nodes, dp * cp, as_leaves(graph, terms, ""), terms)
    values = Values(terms, Leaves(graph, {"x": list(held)}), NodeBlocks(graph))
    found = values.of(lowered.accesses[graph.outputs[0].value])
    np.testing.assert_allclose(found, np.stack(evaluate(graph, {"x": list(held)})["y"]))
    assert not lowered.unknown
