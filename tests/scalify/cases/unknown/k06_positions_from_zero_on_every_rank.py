"""Shares of a sequence whose positions start at 0 on every rank."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, rates = p.input("x", "f32", (8, 6)), p.input("rates", "f32", (6,))
    angles = p.add("mul", p.counter(0, 8, 1), rates)
    p.output("y", p.add("mul", x, p.add("cos", angles)))
    return p.graph()


def candidate() -> Graph:
    p = Program(sp=2)
    x, rates = p.input("x", "f32", (4, 6)), p.input("rates", "f32", (6,))
    angles = p.add("mul", p.counter(0, 4, 1), rates)  # suspect
    p.output("y", p.add("mul", x, p.add("cos", angles)))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(0), "rates": replicated},
    outputs={"y": sharded(0)},
)
