"""B21 as it should be: columns are gathered, reshaped, and cut along the new rows."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=4)
    p.output("y", p.own_piece(p.shaped(p.gathered(p.input("x", "f32", (12, 2)), 1), 16, 6), 0))
    return p.graph()


PAIR = replace(load_pair("unknown/b21_view_of_column_shards"), verdict="proved", candidate=candidate())
