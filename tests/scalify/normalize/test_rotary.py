"""Rotary embeddings in two spellings: halves swapped and negated as a whole, or each half by itself."""

import pytest
from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph, NodeId
from scalify.prove.verify import verify
from scalify.verdict import Proved, Unknown


def taken(p: Program, x: NodeId, start: int) -> NodeId:
    return p.add("slice", x, starts=(0, start), limits=(6, start + 4), steps=(1, 1))


def rotated(x: NodeId, angle: NodeId, p: Program) -> NodeId:
    """``x * cos(a, a) + (-x2, x1) * sin(a, a)``."""
    both = p.add("concat", angle, angle, axis=1)
    turned = p.add("concat", p.add("neg", taken(p, x, 4)), taken(p, x, 0), axis=1)
    kept = p.add("mul", x, p.add("cos", both))
    return p.add("add", kept, p.add("mul", turned, p.add("sin", both)))


def by_halves(x: NodeId, angle: NodeId, p: Program, first: str) -> NodeId:
    """``(x1 cos - x2 sin, x1 sin + x2 cos)``."""
    cos, sin = p.add("cos", angle), p.add("sin", angle)
    one, two = taken(p, x, 0), taken(p, x, 4)
    left = p.add(first, p.add("mul", one, cos), p.add("mul", two, sin))
    right = p.add("add", p.add("mul", one, sin), p.add("mul", two, cos))
    return p.add("concat", left, right, axis=1)


def scores(halves: str | None) -> Graph:
    p = Program()
    x, bias, angle = (
        p.input("x", "f32", (6, 8)),
        p.input("bias", "f32", (8,)),
        p.input("angle", "f32", (6, 4)),
    )
    query = p.add("add", x, bias)
    turned = rotated(query, angle, p) if halves is None else by_halves(query, angle, p, halves)
    p.output("y", p.add("einsum", turned, turned, spec="ad,bd->ab"))
    return p.graph()


def pair(first: str) -> Pair:
    names = ("x", "bias", "angle")
    return Pair(
        verdict="proved",
        baseline=scores(None),
        candidate=scores(first),
        inputs=dict.fromkeys(names, replicated),
        outputs={"y": replicated},
    )


@pytest.mark.parametrize(("first", "right"), [("sub", True), ("add", False)])
def test_both_spellings_are_one(first: str, right: bool) -> None:
    spelled = pair(first)
    assert bool(spelled.differing()) is not right
    verdict = verify(spelled.baseline, spelled.candidate, spelled.relations())
    assert isinstance(verdict, Proved if right else Unknown)
