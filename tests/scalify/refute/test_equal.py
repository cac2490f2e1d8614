"""Programs that are equal over the reals, written so that numerics make it hard: none may be refuted."""

from collections.abc import Callable

import numpy as np
import pytest
from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import DType, Graph, NodeId
from scalify.refute.budget import Search
from scalify.refute.refute import refute
from scalify.verdict import Reason, Unknown, Verdict

UNKNOWN = Unknown(reason=Reason.UNPROVED, outputs=(), assumptions=())
SINGLE = float(np.float32(0.1))

Write = Callable[[Program, NodeId], NodeId]
"""One of two programs on ``x`` [6, 8], 32-bit."""

Both = tuple[Write, Write]


def graph(write: Write, dtype: DType = "f32", shape: tuple[int, ...] = (6, 8)) -> Graph:
    p = Program()
    p.output("y", write(p, p.input("x", dtype, shape)))
    return p.graph()


def searched(baseline: Graph, candidate: Graph, draws: int = 48) -> Verdict:
    names = [str(node.attrs["name"]) for node in candidate.inputs()]
    pair = Pair(
        verdict="unknown",
        baseline=baseline,
        candidate=candidate,
        inputs=dict.fromkeys(names, replicated),
        outputs=dict.fromkeys([output.name for output in candidate.outputs], replicated),
    )
    return refute(pair.baseline, pair.candidate, pair.relations(), UNKNOWN, Search(draws=draws))


def real(p: Program, x: NodeId) -> NodeId:
    return p.add("cast", x, dtype="f32")


def whole(p: Program, x: NodeId, dtype: DType = "i64") -> NodeId:
    return p.add("cast", x, dtype=dtype)


def back(p: Program, x: NodeId) -> NodeId:
    """x, but for rounding."""
    return p.add("mul", p.add("mul", x, 0.1), 10.0)


def centred(p: Program, x: NodeId) -> NodeId:
    return p.add("sub", x, p.mean(x, 1, keepdims=True))


def normal(p: Program, x: NodeId, eps: float) -> NodeId:
    c = centred(p, x)
    variance = p.mean(p.add("square", c), 1, keepdims=True)
    return p.add("mul", c, p.add("rsqrt", p.add("add", variance, eps)))


def normal_by_squares(p: Program, x: NodeId, eps: float) -> NodeId:
    m = p.mean(x, 1, keepdims=True)
    variance = p.add("sub", p.mean(p.add("square", x), 1, keepdims=True), p.add("square", m))
    return p.add("div", p.add("sub", x, m), p.add("sqrt", p.add("add", variance, eps)))


def alike_rows(p: Program, x: NodeId) -> NodeId:
    """Each row holds one computed number, eight times over."""
    return p.add("broadcast", p.total(p.add("mul", p.add("exp", x), 0.3), 1), shape=(6, 7), dims=(0,))


def weights(p: Program, scores: NodeId) -> NodeId:
    e = p.add("exp", p.add("sub", scores, p.most(scores, 1, keepdims=True)))
    return p.add("div", e, p.total(e, 1, keepdims=True))


def naive(p: Program, scores: NodeId) -> NodeId:
    e = p.add("exp", scores)
    return p.add("div", e, p.total(e, 1, keepdims=True))


def online(p: Program, scores: NodeId) -> NodeId:
    """The sum of exponentials in two halves, each by its own maximum."""
    halves = [p.cut(scores, 1, 0, 4), p.cut(scores, 1, 4, 4)]
    most = [p.most(half, 1, keepdims=True) for half in halves]
    sums = [p.total(p.add("exp", p.add("sub", h, m)), 1, keepdims=True)
            for h, m in zip(halves, most, strict=True)]  # fmt: skip
    both = p.add("max", *most)
    scaled = [p.add("mul", s, p.add("exp", p.add("sub", m, both))) for s, m in zip(sums, most, strict=True)]
    return p.add("add", p.add("log", p.add("add", *scaled)), both)


def mask(p: Program) -> NodeId:
    """Row 0 sees nothing."""
    return p.add("lt", p.counter(1, 6, 8), p.counter(0, 6, 8))


def filled(p: Program, x: NodeId, fill: float) -> NodeId:
    return p.add("softmax", p.add("where", mask(p), x, fill), axis=1)


def added(p: Program, x: NodeId, fill: float) -> NodeId:
    masked = p.add("mul", p.add("sub", 1.0, real(p, mask(p))), fill)
    return p.add("softmax", p.add("add", x, masked), axis=1)


def subtracted(p: Program, x: NodeId, fill: float) -> NodeId:
    masked = p.add("mul", real(p, p.add("not", mask(p))), fill)
    return p.add("softmax", p.add("sub", x, masked), axis=1)


def zeroed(p: Program, x: NodeId, fill: float) -> NodeId:
    """Rows that see nothing are made zero afterwards."""
    seen = p.add("reduce", mask(p), kind="any", axes=(1,), keepdims=True)
    return p.add("where", seen, filled(p, x, fill), 0.0)


def loss_of(p: Program, masked: NodeId) -> NodeId:
    return p.total(p.add("mul", masked, masked), 0, 1)


def complex_(p: Program, x: NodeId) -> NodeId:
    return p.add("cast", x, dtype="c64")


def greater(p: Program, x: NodeId, y: NodeId) -> NodeId:
    return p.add("where", p.add("ge", x, y), x, 100.0)


def every(p: Program, truth: NodeId) -> NodeId:
    return real(p, p.add("reduce", truth, kind="all", axes=(0, 1), keepdims=False))


def root(p: Program, x: NodeId) -> NodeId:
    return p.add("sqrt", p.add("square", x))


def ratio(p: Program, x: NodeId) -> NodeId:
    """Sums of small whole numbers are zero now and then."""
    s = p.total(x, 1, keepdims=True)
    return p.add("div", p.add("mul", x, s), s)


EQUAL: dict[str, Both] = {
    "a comparison that hangs by rounding": (
        lambda p, x: greater(p, x, x),
        lambda p, x: greater(p, back(p, x), x),
    ),
    "all of many such comparisons": (
        lambda p, x: every(p, p.add("ge", x, x)),
        lambda p, x: every(p, p.add("ge", back(p, x), x)),
    ),
    "whether two ways to the same number agree": (
        lambda p, x: every(p, p.add("eq", x, x)),
        lambda p, x: every(p, p.add("eq", back(p, x), x)),
    ),
    "rounding to eighths": (
        lambda p, x: p.add("div", p.add("floor", p.add("mul", x, 16.0)), 16.0),
        lambda p, x: p.add("div", p.add("floor", p.add("mul", back(p, x), 16.0)), 16.0),
    ),
    "whole numbers of products": (
        lambda p, x: whole(p, p.add("mul", x, 16.0)),
        lambda p, x: whole(p, p.add("mul", back(p, x), 16.0)),
    ),
    "the sum of all signs of what cancels": (
        lambda p, x: p.total(p.add("sign", p.add("sub", x, x)), 0, 1),
        lambda p, x: p.total(p.add("sign", p.add("sub", back(p, x), x)), 0, 1),
    ),
    "remainders at whole multiples": (
        lambda p, x: p.total(p.add("mod", p.add("mul", x, 16.0), 1.0), 0, 1),
        lambda p, x: p.total(p.add("mod", p.add("mul", back(p, x), 16.0), 1.0), 0, 1),
    ),
    "what cancels exactly, magnified": (
        lambda p, x: p.add("mul", p.add("sub", x, x), 1e12),
        lambda p, x: p.add("mul", p.add("sub", back(p, x), x), 1e12),
    ),
    "what cancels exactly, normalised": (
        lambda p, x: normal(p, p.add("sub", x, x), 1e-30),
        lambda p, x: normal(p, p.add("sub", back(p, x), x), 1e-30),
    ),
    "a variance by squares": (
        lambda p, x: normal(p, x, 1e-5),
        lambda p, x: normal_by_squares(p, x, 1e-5),
    ),
    "a variance by squares of rows that are alike": (
        lambda p, x: normal(p, alike_rows(p, x), 1e-12),
        lambda p, x: normal_by_squares(p, alike_rows(p, x), 1e-12),
    ),
    "a norm of rows that are alike": (
        lambda p, x: normal(p, alike_rows(p, x), 1e-300),
        lambda p, x: p.add("layer_norm", alike_rows(p, x), axes=(1,), eps=1e-300),
    ),
    "a norm of rows that are alike, made of products": (
        lambda p, x: p.add("layer_norm", p.add("mul", alike_rows(p, x), 3.0), axes=(1,), eps=1e-40),
        lambda p, x: p.add("layer_norm", alike_rows(p, p.add("add", x, 0.0)), axes=(1,), eps=1e-40 / 9),
    ),
    "an eps of 32 bits": (
        lambda p, x: p.add("rms_norm", p.add("mul", x, 1e-4), axes=(1,), eps=1e-5),
        lambda p, x: p.add("rms_norm", p.add("mul", x, 1e-4), axes=(1,), eps=float(np.float32(1e-5))),
    ),
    "a root of a square": (lambda p, x: p.add("abs", x), root),
    "far apart": (
        lambda p, x: p.add("logsumexp", p.add("mul", x, 40.0), axes=(1,), keepdims=True),
        lambda p, x: online(p, p.add("mul", x, 40.0)),
    ),
    "a softmax without the maximum": (
        lambda p, x: weights(p, p.add("mul", x, 60.0)),
        lambda p, x: naive(p, p.add("mul", x, 60.0)),
    ),
    "the logarithm of a softmax": (
        lambda p, x: p.add("log_softmax", p.add("mul", x, 60.0), axis=1),
        lambda p, x: p.add("log", p.add("softmax", p.add("mul", x, 60.0), axis=1)),
    ),
    "the logarithm of a product that is too small": (
        lambda p, x: p.add("mul", p.add("abs", x), -700.0),
        lambda p, x: p.add("log", p.add("mul", *[p.add("exp", p.add("mul", p.add("abs", x), -350.0))] * 2)),
    ),
    "the root of a square that is too small": (
        lambda p, x: p.add("exp", p.add("mul", p.add("abs", x), -300.0)),
        lambda p, x: root(p, p.add("exp", p.add("mul", p.add("abs", x), -300.0))),
    ),
    "a quotient of sums that may be zero": (lambda p, x: p.add("add", x, 0.0), ratio),
    "a guarded quotient": (
        lambda p, x: p.add("where", p.add("eq", x, 0.0), 0.0, p.add("reciprocal", x)),
        lambda p, x: p.add("where", p.add("ne", x, 0.0), p.add("div", 1.0, x), 0.0),
    ),
    "one over zero, bounded": (
        lambda p, x: p.add("tanh", p.add("div", 1.0, p.add("sub", p.total(x, 1), p.total(x, 1)))),
        lambda p, x: p.add("tanh", p.add("div", 1.0, p.add("mul", p.total(x, 1), -0.0))),
    ),
    "whether a quotient that may not exist is large": (
        lambda p, x: real(p, p.add("gt", p.add("div", p.total(x, 1), p.total(x, 1)), 0.5)),
        lambda p, x: p.add("add", p.add("mul", p.total(x, 1), 0.0), 1.0),
    ),
    "the logarithm undone": (lambda p, x: p.add("add", x, 0.0), lambda p, x: p.add("exp", p.add("log", x))),
    "the root of a negative number": (
        lambda p, x: p.add("sqrt", p.add("neg", complex_(p, x))),
        lambda p, x: p.add("sqrt", p.add("mul", complex_(p, x), p.constant(-1.0, "f32"))),
    ),
    "rows that see nothing: filled and added": (
        lambda p, x: filled(p, x, -1e4),
        lambda p, x: added(p, x, -1e4),
    ),
    "rows that see nothing: filled and subtracted": (
        lambda p, x: filled(p, x, -1e9),
        lambda p, x: subtracted(p, x, 1e4),
    ),
    "rows that see nothing: zeroed": (lambda p, x: filled(p, x, -1e9), lambda p, x: zeroed(p, x, -1e9)),
    "a loss over rows that see nothing": (
        lambda p, x: loss_of(p, filled(p, x, -1e4)),
        lambda p, x: loss_of(p, added(p, x, -1e4)),
    ),
    "a mean over rows that see nothing": (
        lambda p, x: loss_of(p, added(p, x, -1e4)),
        lambda p, x: loss_of(p, filled(p, x, -1e9)),
    ),
    "indices of equals": (
        lambda p, x: p.add("topk_indices", p.joined(1, x, x), k=3, axis=1, largest=True),
        lambda p, x: p.add(
            "sub", 15, p.add("topk_indices", p.add("reverse", p.joined(1, x, x), axes=(1,)), k=3, axis=1,
                             largest=True)),
    ),
    "what two numbers hold of a sum": (
        lambda p, x: p.add("sub", p.add("add", x, 1e12), 1e12),
        lambda p, x: p.add("add", x, 0.0),
    ),
    "mean of a mean": (
        lambda p, x: p.mean(p.add("mul", x, 1 / 3), 0, 1),
        lambda p, x: p.add("div", p.mean(p.mean(x, 1), 0), 3.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_equal_programs_are_not_refuted(name: str):
    one, other = (graph(write) for write in EQUAL[name])
    assert isinstance(searched(one, other), Unknown)
    assert isinstance(searched(other, one), Unknown)
