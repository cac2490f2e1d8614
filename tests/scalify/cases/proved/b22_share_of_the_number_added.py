"""B22, right in another way: every rank adds its share of the number."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (4, 3)), p.input("w", "f32", (3, 10), role="parameter")
    p.output("y", p.over_ranks(p.add("add", p.product("bi,io->bo", x, w), 1.5)))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b22_number_added_to_pending_sum"),
    verdict="proved",
    candidate=candidate(),
)
