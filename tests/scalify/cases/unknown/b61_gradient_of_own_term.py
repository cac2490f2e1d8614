"""B61: the loss is a sum over ranks, and the gradient of a replicated weight is that of the own term."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    w, data = p.input("w", "f32", (4,), role="parameter"), p.input("data", "f32", (6, 4))
    angles = p.add("mul", data, w)
    p.output("loss", p.total(p.add("sin", angles), 0, 1))
    p.output("dw", p.total(p.add("mul", p.add("cos", angles), data), 0))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=2)
    w, data = p.input("w", "f32", (4,), role="parameter"), p.input("data", "f32", (3, 4))
    angles = p.add("mul", data, w)
    p.output("loss", p.over_ranks(p.total(p.add("sin", angles), 0, 1)))
    p.output("dw", p.total(p.add("mul", p.add("cos", angles), data), 0))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"w": replicated, "data": sharded(0)},
    outputs={"loss": replicated, "dw": replicated},
    agreeing=("loss",),
)
