"""B37 as it should be: both halves read the tensor as it was."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program()
    y = p.add("silu", p.input("x", "f32", (6,)))
    low, high = p.cut(y, 0, 0, 3), p.cut(y, 0, 3, 3)
    first = p.add("add", low, p.add("reverse", high, axes=(0,)))
    p.output("x", p.joined(0, first, p.add("add", high, p.add("reverse", low, axes=(0,)))))
    return p.graph()


PAIR = replace(load_pair("unknown/b37_flipped_into_itself"), verdict="proved", candidate=candidate())
