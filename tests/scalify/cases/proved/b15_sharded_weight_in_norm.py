"""B15's other half: the squares of sharded gradients are summed over ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair, sharded

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    own = p.total(p.add("square", p.input("g", "f32", (2, 6))), 0, 1)
    p.output("norm", p.add("sqrt", p.over_ranks(own)))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b15_replicated_weight_in_norm"),
    verdict="proved",
    candidate=candidate(),
    inputs={"g": sharded(0)},
)
