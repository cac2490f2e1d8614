"""B29 as it should be: a sum over the ranks left for sharding, divided by the number of all ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(ep=2, fsdp=1)
    x, grad = p.input("x", "f32", (1, 2, 3, 4)), p.input("grad", "f32", (1, 2, 3, 5))
    arrived = (p.exchanged(part, 1, 0, "ep") for part in (x, grad))
    own = p.product("reti,reto->eio", *arrived)
    p.output("dw", p.add("div", p.scattered(own, 1, "fsdp"), 2.0))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b29_experts_averaged_over_a_group_of_one"), verdict="proved", candidate=candidate()
)
