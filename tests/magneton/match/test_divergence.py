# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

from typing import NamedTuple

import numpy as np
from graphs import Graph

from magneton.compare.model import ValuePlace
from magneton.compare.places import place_value
from magneton.match import first_divergence, match
from magneton.profile.model import Profile

T, D, HEADS = 12, 32, 4
draws = np.random.default_rng(0)
x0 = draws.standard_normal((2, T, D))
weights = {name: draws.standard_normal((D, D)) / 6 for name in ("q", "o", "up", "down")}


def model(
    x: np.ndarray = x0, heads: tuple[int, ...] = (0, 1, 2, 3), prefix: str = "", **changed: np.ndarray
) -> Profile:
    graph = Graph()
    w = {name: graph.parameter(prefix + name, array) for name, array in (weights | changed).items()}
    graph.module = "attention"
    h = graph.op("q", np.matmul, graph.input(f"{prefix}x", x), w["q"])
    split = graph.view("view", lambda a: a.reshape(2, T, HEADS, -1), h)
    mixed = graph.op("mix", lambda a: np.tanh(a[:, :, list(heads)]), split)
    h = graph.op("o", np.matmul, graph.view("join", lambda a: a.reshape(2, T, D), mixed), w["o"])
    graph.module = "mlp"
    h = graph.op("up", lambda a, w: np.tanh(a @ w), h, w["up"])
    graph.op("down", np.matmul, h, w["down"])
    return graph.profile()


class Found(NamedTuple):
    kind: str
    baseline: ValuePlace
    candidate: ValuePlace


def between(baseline: Profile, candidate: Profile) -> Found:
    found = first_divergence(baseline, candidate, match(baseline, candidate))
    assert found is not None
    return Found(found.kind, place_value(baseline, found.baseline), place_value(candidate, found.candidate))


def test_equal_systems_do_not_diverge():
    assert first_divergence(model(), model(), match(model(), model())) is None
    assert first_divergence(model(), model(prefix="m."), match(model(), model(prefix="m."))) is None


def test_a_changed_weight_is_named():
    changed = weights["up"].copy()
    changed[3] *= 2
    found = between(model(), model(up=changed))
    assert (found.kind, found.baseline.name, found.baseline.role) == ("values", "up", "parameter")
    assert found.candidate.name == "up"


def test_a_changed_weight_is_found_under_another_name():
    changed = weights["up"].copy()
    changed[3] *= 2
    found = between(model(), model(prefix="model.", up=changed))
    assert (found.kind, found.baseline.name, found.candidate.name) == ("values", "up", "model.up")


def test_swapped_prompts_are_the_first_difference():
    found = between(model(), model(x=x0[::-1]))
    assert (found.kind, found.baseline.name, found.baseline.shape) == ("order", "x", (2, T, D))


def test_swapped_prompts_are_found_under_another_name():
    found = between(model(), model(x=x0[::-1], prefix="model."))
    assert (found.kind, found.baseline.name, found.candidate.name) == ("order", "x", "model.x")


def test_swapped_heads_are_found_where_they_are_swapped():
    found = between(model(), model(heads=(1, 0, 2, 3)))
    assert (found.kind, found.baseline.producer, found.candidate.producer) == ("order", "mix", "mix")
    assert found.baseline.shape == (2, T, HEADS, D // HEADS)
    assert found.baseline.source is not None
    assert found.baseline.source.code == "y = f(x)"


def test_a_square_weight_stored_transposed_is_no_divergence():
    def stored(transposed: bool) -> Profile:
        graph = Graph()
        x = graph.input("x", x0)
        w = graph.parameter("w", weights["q"].T.copy() if transposed else weights["q"])
        used = graph.view("t", np.transpose, w) if transposed else w
        graph.op("mm", np.matmul, x, used)
        return graph.profile()

    assert first_divergence(stored(True), stored(False), match(stored(True), stored(False))) is None


def test_another_function_shows_its_first_result():
    def activated(sharp: float) -> Profile:
        graph = Graph()
        h = graph.op("mm", np.matmul, graph.input("x", x0), graph.parameter("w", weights["q"]))
        h = graph.op("act", lambda a: np.tanh(sharp * a), h)
        graph.op("out", np.matmul, h, graph.parameter("o", weights["o"]))
        return graph.profile()

    found = between(activated(1.0), activated(2.0))
    assert (found.kind, found.baseline.producer, found.candidate.producer) == ("values", "act", "act")
