"""B36 as it should be: all rows are read from the matrix as it was."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program()
    x = kept = p.input("x", "f32", (3, 3))
    for row in range(3):
        x = p.add("update_slice", x, p.turned(p.cut(kept, 1, row, 1), 1, 0), starts=(row, 0))
    p.output("x", x)
    return p.graph()


PAIR = replace(load_pair("unknown/b36_transposed_into_itself"), verdict="proved", candidate=candidate())
