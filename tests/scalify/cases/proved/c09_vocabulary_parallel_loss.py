"""Control: cross-entropy of sharded logits, with a maximum, a sum and the target's logit over ranks."""

from scalify_cases import Pair, Program, below, replicated, sharded

from scalify.ir.graph import Graph
from scalify.ir.mesh import RankInt

ROWS, CLASSES = 5, 8


def baseline() -> Graph:
    p = Program()
    logits, target = p.input("logits", "f32", (ROWS, CLASSES)), p.input("target", "i64", (ROWS,))
    p.output("loss", p.add("cross_entropy", logits, target, reduction="none"))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    logits, target = p.input("logits", "f32", (ROWS, CLASSES // 2)), p.input("target", "i64", (ROWS,))
    most = p.over_ranks(p.most(logits, 1, keepdims=True), kind="max")
    moved = p.add("sub", logits, most)
    total = p.over_ranks(p.total(p.add("exp", moved), 1))
    first = p.constant(RankInt(base=0, terms=((1, 2, CLASSES // 2),)), "i64")
    own = p.add("add", p.counter(1, ROWS, CLASSES // 2), first)
    hit = p.add("eq", own, p.shaped(target, ROWS, 1))
    picked = p.over_ranks(p.total(p.add("where", hit, logits, 0.0), 1))
    of_all = p.add("add", p.add("log", total), p.shaped(most, ROWS))
    loss = p.add("sub", of_all, picked)
    p.output("loss", p.add("where", p.add("ne", target, -100), loss, 0.0))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"logits": sharded(1), "target": replicated},
    outputs={"loss": replicated},
    draws={"target": below(CLASSES)},
)
