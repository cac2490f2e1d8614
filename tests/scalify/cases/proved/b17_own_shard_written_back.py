"""B17 as it should be: every rank updates and hands out its own shard."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(dp=2)
    weight, grad = p.input("weight", "f32", (8,)), p.input("grad", "f32", (8,))
    updated = p.add("sub", p.own_piece(weight, 0), p.add("mul", p.own_piece(grad, 0), 0.125))
    p.output("weight", p.gathered(updated, 0))
    return p.graph()


PAIR = replace(load_pair("unknown/b17_first_shard_written_back"), verdict="proved", candidate=candidate())
