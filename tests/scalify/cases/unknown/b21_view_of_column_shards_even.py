"""B21 with sizes whose radices agree, so that both reshapes are plain index maps."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    p.output("y", p.shaped(p.add("exp", p.input("x", "f32", (4, 8))), 8, 4))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    p.output("y", p.shaped(p.add("exp", p.input("x", "f32", (4, 4))), 4, 4))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1)},
    outputs={"y": sharded(0)},
)
