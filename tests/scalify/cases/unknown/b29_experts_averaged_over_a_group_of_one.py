"""B29: gradients of experts are averaged over the ranks left for sharding, one, and not over all ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(ep=2, fsdp=1)
    x, grad = p.input("x", "f32", (1, 2, 3, 4)), p.input("grad", "f32", (1, 2, 3, 5))
    arrived = (p.exchanged(part, 1, 0, "ep") for part in (x, grad))
    own = p.product("reti,reto->eio", *arrived)
    p.output("dw", p.scattered(own, 1, "fsdp", kind="avg"))  # suspect
    return p.graph()


PAIR = replace(load_pair("unknown/b16_experts_divided_by_their_copies"), candidate=candidate())
