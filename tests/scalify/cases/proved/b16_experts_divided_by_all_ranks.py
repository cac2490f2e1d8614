"""B16 as it should be: the gradient of an expert is divided by the number of all ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(ep=2)
    x, grad = p.input("x", "f32", (1, 2, 3, 4)), p.input("grad", "f32", (1, 2, 3, 5))
    arrived = (p.exchanged(part, 1, 0) for part in (x, grad))
    p.output("dw", p.add("div", p.product("reti,reto->eio", *arrived), 2.0))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b16_experts_divided_by_their_copies"), verdict="proved", candidate=candidate()
)
