"""Random programs for matching: the same computation, written in either of two styles.

A program is a list of steps. Each step reads values by number (modulo what there is) and can be written
whole (one operator) or in pieces (several), so that two profiles of one program compute the same values
with other operators.
"""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

from dataclasses import dataclass, replace

import numpy as np
from graphs import Graph, Ref
from hypothesis import strategies as st

from magneton.profile.model import Profile, ValueId
from magneton.profile.sketches import Sketches

ROWS, WIDTH = 12, 16
KINDS = ("linear", "silu", "norm", "add", "mix", "branches", "mask", "write", "dead", "sync", "zero")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    kind: str
    first: int
    second: int


steps = st.builds(Step, kind=st.sampled_from(KINDS), first=st.integers(0, 20), second=st.integers(0, 20))
programs = st.lists(steps, min_size=1, max_size=14)


def written(program: list[Step], pieces: list[bool]) -> Profile:
    """``program`` as a profile; step k in pieces where ``pieces[k % len(pieces)]``."""
    graph = Graph()
    draws = np.random.default_rng(7)
    live = [graph.input("x", draws.standard_normal((ROWS, WIDTH)))]
    for k, step in enumerate(program):
        x, y = live[step.first % len(live)], live[step.second % len(live)]
        weight = draws.standard_normal((WIDTH, WIDTH)) / 4
        graph.module = f"steps.{k}"
        live += _written(graph, step.kind, x, y, weight, pieces[k % len(pieces)])
    return graph.profile()


def _written(graph: Graph, kind: str, x: Ref, y: Ref, weight: np.ndarray, pieces: bool) -> list[Ref]:
    if kind == "linear":
        w, bias = graph.parameter("w", weight), graph.parameter("b", weight[0] * 3)
        if pieces:
            return [graph.op("add", np.add, graph.op("mm", np.matmul, x, w), bias)]
        return [graph.op("addmm", lambda a, w, b: a @ w + b, x, w, bias)]
    if kind == "silu":
        if pieces:
            return [graph.op("mul", np.multiply, x, graph.op("sigmoid", _sigmoid, x))]
        return [graph.op("silu", lambda a: a * _sigmoid(a), x)]
    if kind == "norm":
        return [_norm(graph, x, np.exp(weight[0]), pieces)]
    if kind == "add":
        return [graph.op("add", np.add, x, y)]
    if kind == "mix":
        if pieces:
            turned = graph.view("t", np.transpose, y)
            return [graph.op("mm", np.matmul, graph.op("scores", _scores, x, turned), x)]
        return [graph.op("mix", lambda a, b: _scores(a, b.T) @ a, x, y)]
    if kind == "branches":
        parts = weight[:, :8], weight[:, 8:]
        if pieces:
            halves = [graph.op("mm", np.matmul, x, graph.parameter("w", part)) for part in parts]
            return [graph.op("cat", lambda a, b: np.concatenate([a, b], -1), *halves)]
        return [graph.op("mm", np.matmul, x, graph.parameter("w", weight))]
    if kind == "mask":
        ones = graph.op("ones", lambda: np.ones((ROWS, WIDTH)))
        mask = graph.op("triu", lambda a: np.triu(a, 1) * -np.finfo(np.float64).max / 1e200, ones)
        return [graph.op("masked", lambda a, m: a + np.where(m < 0, -1.5, 0.0), x, mask)]
    if kind == "write":
        room = graph.ops("empty", lambda: (np.zeros((ROWS, WIDTH)),), effect="alloc")[0]
        filled = graph.write("copy_", lambda target, source: source, room, x)
        return [graph.op("tanh", np.tanh, filled)]
    if kind == "dead":
        graph.op("sin", np.sin, x)
        return []
    if kind == "sync":
        graph.sync("item", graph.op("max", np.max, x))
        return []
    zeros = graph.op("zeros_like", np.zeros_like, x)
    return [graph.op("add", np.add, x, zeros)]


def _norm(graph: Graph, x: Ref, gain: np.ndarray, pieces: bool) -> Ref:
    """With a gain, as real ones have: a norm of a norm is then another value, not the same one again."""
    g = graph.parameter("g", gain)
    if not pieces:
        return graph.op(
            "rms_norm", lambda a, g: a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-6) * g, x, g
        )
    squares = graph.op("pow", np.square, x)
    mean = graph.op("mean", lambda a: a.mean(-1, keepdims=True), squares)
    scale = graph.op("rsqrt", lambda a: 1 / np.sqrt(a + 1e-6), mean)
    return graph.op("gain", np.multiply, graph.op("mul", np.multiply, x, scale), g)


def _sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def _scores(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.tanh(a @ b / 4)


def relabelled(profile: Profile, seed: int) -> Profile:
    """The same profile with its values numbered in another way."""
    order = np.random.default_rng(seed).permutation(len(profile.values))
    new = {int(old): ValueId(k) for k, old in enumerate(order)}
    return replace(
        profile,
        values=tuple(replace(profile.values[old], value_id=ValueId(k)) for k, old in enumerate(order)),
        sketches=Sketches(
            **{name: getattr(profile.sketches, name)[order] for name in Sketches.__dataclass_fields__}
        ),
        operators=tuple(
            replace(
                op,
                inputs=tuple(new[v] for v in op.inputs),
                outputs=tuple(new[v] for v in op.outputs),
                mutated=tuple(new[v] for v in op.mutated),
            )
            for op in profile.operators
        ),
    )
