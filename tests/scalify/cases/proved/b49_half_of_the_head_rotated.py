"""B49 as it should be, as rotate_half writes it: q * cos + (-second, first) * sin on the first half."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

TOKENS, HEAD = 5, 8


def candidate() -> Graph:
    p = Program()
    q = p.input("q", "f32", (TOKENS, HEAD))
    cos, sin = (p.cut(p.input(name, "f32", (TOKENS, HEAD // 2)), 1, 0, 2) for name in ("cos", "sin"))
    half = p.cut(q, 1, 0, 4)
    swapped = p.joined(1, p.add("neg", p.cut(half, 1, 2, 2)), p.cut(half, 1, 0, 2))
    turned = p.add(
        "add", p.add("mul", half, p.joined(1, cos, cos)), p.add("mul", swapped, p.joined(1, sin, sin))
    )
    p.output("q", p.joined(1, turned, p.cut(q, 1, 4, 4)))
    return p.graph()


PAIR = replace(load_pair("unknown/b49_whole_head_rotated"), verdict="proved", candidate=candidate())
