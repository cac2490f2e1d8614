"""B09: a vocabulary-parallel loss of logits that every rank holds in full: too large by log(ranks)."""

from scalify_cases import Pair, Program, below, replicated

from scalify.ir.graph import Graph, NodeId

ROWS, CLASSES = 5, 8


def picked(p: Program, logits: NodeId, target: NodeId) -> NodeId:
    hit = p.add("eq", p.counter(1, ROWS, CLASSES), p.shaped(target, ROWS, 1))
    return p.total(p.add("where", hit, logits, 0.0), 1)


def baseline() -> Graph:
    p = Program()
    logits, target = p.input("logits", "f32", (ROWS, CLASSES)), p.input("target", "i64", (ROWS,))
    p.output("loss", p.add("sub", p.add("logsumexp", logits, axes=(1,)), picked(p, logits, target)))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    logits, target = p.input("logits", "f32", (ROWS, CLASSES)), p.input("target", "i64", (ROWS,))
    most = p.over_ranks(p.most(logits, 1), kind="max")
    powers = p.add("exp", p.add("sub", logits, p.shaped(most, ROWS, 1)))
    total = p.over_ranks(p.total(powers, 1))  # suspect
    of_all = p.add("add", p.add("log", total), most)
    p.output("loss", p.add("sub", of_all, picked(p, logits, target)))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"logits": replicated, "target": replicated},
    outputs={"loss": replicated},
    draws={"target": below(CLASSES)},
)
