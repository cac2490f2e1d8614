"""Shares of a sequence whose positions count on from rank to rank."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph
from scalify.ir.mesh import RankInt


def candidate() -> Graph:
    p = Program(sp=2)
    x, rates = p.input("x", "f32", (4, 6)), p.input("rates", "f32", (6,))
    first = p.constant(RankInt(base=0, terms=((1, 2, 4),)), "i64")
    angles = p.add("mul", p.add("add", p.counter(0, 4, 1), first), rates)
    p.output("y", p.add("mul", x, p.add("cos", angles)))
    return p.graph()


PAIR = replace(
    load_pair("unknown/k06_positions_from_zero_on_every_rank"), verdict="proved", candidate=candidate()
)
