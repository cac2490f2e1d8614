"""B46 as it should be: the factor is in the routing weights and nowhere else."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program()
    weights, experts = p.input("weights", "f32", (5, 3)), p.input("experts", "f32", (5, 3, 4))
    p.output("y", p.product("te,ted->td", p.add("mul", weights, 2.5), experts))
    return p.graph()


PAIR = replace(load_pair("unknown/b46_routing_scaled_twice"), verdict="proved", candidate=candidate())
