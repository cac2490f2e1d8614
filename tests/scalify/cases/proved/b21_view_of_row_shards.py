"""B21's legal case: a shard of whole rows may be reshaped on its own."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph


def view(tp: int) -> Graph:
    p = Program(tp=tp) if tp > 1 else Program()
    p.output("y", p.shaped(p.add("exp", p.input("x", "f32", (12 // tp, 8))), 24 // tp, 4))
    return p.graph()


PAIR = Pair(
    verdict="proved", baseline=view(1), candidate=view(4), inputs={"x": sharded(0)}, outputs={"y": sharded(0)}
)
