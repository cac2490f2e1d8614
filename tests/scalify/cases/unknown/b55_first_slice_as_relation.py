"""B55 where the relation is taken from what the loader does: every rank holds the first rows."""

from dataclasses import replace

from scalify_cases import Program, load_pair, replicated

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (5, 6)), p.input("w", "f32", (4, 6), role="parameter")
    p.output("y", p.product("tm,fm->tf", x, w))  # suspect
    return p.graph()


PAIR = replace(
    load_pair("unknown/b55_first_slice_on_every_rank"),
    candidate=candidate(),
    inputs={"x": replicated, "w": replicated},
)
