"""B71: each rank looks up one of its picks, and a shift leaves a sum over rows as if all of them existed."""

import numpy as np
from scalify_cases import Array, Pair, Program, replicated, sharded

from scalify.ir.graph import Graph, NodeId
from scalify.ir.mesh import RankInt

ROWS = 3
PICKS = np.array([[1, 7], [9, 2]])
"""Of each rank's picks only the one that it looks up is a row."""


def _picked(p: Program, picks: NodeId, values: NodeId) -> NodeId:
    hits = p.add("one_hot", picks, classes=ROWS, dtype="f32")
    return p.total(p.add("mul", hits, values), 2)


def _inputs(p: Program, ranks: int) -> tuple[NodeId, NodeId, NodeId]:
    return p.input("picks", "i64", (ranks, 2)), p.input("rows", "f32", (ROWS,)), p.input("shift", "f32", ())


def baseline() -> Graph:
    p = Program()
    picks, rows, shift = _inputs(p, 2)
    p.output("y", p.add("sub", _picked(p, picks, rows), shift))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    picks, rows, shift = _inputs(p, 1)
    own = p.add("take", rows, p.cut(picks, 1, RankInt(base=0, terms=((1, 2, 1),)), 1), axis=0)
    y = _picked(p, picks, p.add("sub", rows, shift))
    p.output("y", p.add("add", p.add("mul", own, 0.0), y))  # suspect
    return p.graph()


def _picks(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return PICKS[: shape[0]]


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"picks": sharded(0), "rows": replicated, "shift": replicated},
    outputs={"y": sharded(0)},
    draws={"picks": _picks},
)
