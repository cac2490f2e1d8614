# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

import numpy as np
from graphs import Graph

from magneton.match import match
from magneton.profile.model import Profile

D = 16


def names(profile: Profile, ops: tuple[int, ...]) -> list[str]:
    return [profile.operators[op].name for op in ops]


def decoded(*, steps: int, layers: int) -> Profile:
    """A cache grows by a row each step: the same work on other sizes."""
    draws, graph = np.random.default_rng(0), Graph()
    weights = [graph.parameter(f"w{k}", draws.standard_normal((D, D)) / 4) for k in range(layers)]
    caches = [graph.source("activation", "", draws.standard_normal((5, D))) for _ in range(layers)]
    for step in range(steps):
        x = graph.input(f"x{step}", draws.standard_normal((1, D)))
        for k in range(layers):
            graph.module = f"layers.{k}.attention"
            key = graph.op("mm", np.matmul, x, weights[k])
            caches[k] = graph.op("cat", lambda a, b: np.concatenate([a, b]), caches[k], key)
            x = graph.op("attend", lambda x, c: np.tanh(x @ c.T) @ c, x, caches[k])
    return graph.profile()


def test_layers_and_steps_of_growing_size_are_one_group():
    profile = decoded(steps=3, layers=4)
    matching = match(profile, profile)
    kinds = {
        tuple(names(profile, matching.regions[g.regions[0]].baseline)): len(g.regions)
        for g in matching.groups
    }
    assert kinds == {("mm",): 12, ("cat",): 12, ("attend",): 12}


def test_parameters_of_other_shapes_are_groups_apart():
    draws, graph = np.random.default_rng(0), Graph()
    x = graph.input("x", draws.standard_normal((6, D)))
    for width in (D, 2 * D, 2 * D):
        w = draws.standard_normal((x.array.shape[1], width)) / 4
        x = graph.op("mm", np.matmul, x, graph.parameter("w", w))
    matching = match(graph.profile(), graph.profile())
    assert [len(group.regions) for group in matching.groups] == [1, 1, 1]
