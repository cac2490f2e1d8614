"""B26 as it should be: the gradient is summed over ranks before it is added up."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    grad, w = p.input("grad", "f32", (5, 4)), p.input("w", "f32", (4, 6), role="parameter")
    before = p.input("before", "f32", (5, 6))
    p.output("dx", p.add("add", before, p.over_ranks(p.product("tv,vm->tm", grad, w))))
    return p.graph()


PAIR = replace(load_pair("unknown/b26_pending_gradient_accumulated"), verdict="proved", candidate=candidate())
