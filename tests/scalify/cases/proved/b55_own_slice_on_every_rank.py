"""B55 as it should be: every rank takes its own rows of the weight."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (5, 6)), p.input("w", "f32", (8, 6), role="parameter")
    p.output("y", p.product("tm,fm->tf", x, p.own_piece(w, 0)))
    return p.graph()


PAIR = replace(load_pair("unknown/b55_first_slice_on_every_rank"), verdict="proved", candidate=candidate())
