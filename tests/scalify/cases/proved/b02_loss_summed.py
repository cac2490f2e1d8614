"""B02 as it should be: no factor, and a sum over ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

TOKENS = 8


def candidate() -> Graph:
    p = Program(cp=2)
    own = p.total(p.input("grads", "f32", (TOKENS // 2, 3)), 0)
    p.output("grad", p.add("div", p.over_ranks(own), float(TOKENS)))
    return p.graph()


PAIR = replace(load_pair("unknown/b02_loss_times_ranks"), verdict="proved", candidate=candidate())
