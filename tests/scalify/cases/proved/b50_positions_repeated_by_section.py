"""B50 as it should be: positions are repeated section by section, then multiplied at once."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

TOKENS = 4


def candidate() -> Graph:
    p = Program()
    positions, rates = p.input("positions", "f32", (3, TOKENS)), p.input("rates", "f32", (6,))
    by_section = p.add("broadcast", positions, shape=(3, 2, TOKENS), dims=(0, 2))
    angles = p.add("mul", p.turned(p.shaped(by_section, 6, TOKENS), 1, 0), rates)
    p.output("cos", p.add("cos", angles))
    return p.graph()


PAIR = replace(load_pair("unknown/b50_first_row_of_positions"), verdict="proved", candidate=candidate())
GAP = "an operation on the whole is not compared with the baseline's operations on parts of it"
