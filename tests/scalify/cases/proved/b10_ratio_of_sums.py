"""B10 as it should be: losses and counts are summed over ranks, then divided."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(dp=2)
    loss, count = p.input("loss", "f32", (1,)), p.input("count", "f32", (1,))
    total, tokens = p.over_ranks(p.total(loss, 0)), p.over_ranks(p.total(count, 0))
    p.output("loss", p.add("div", total, tokens))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b10_mean_of_ratios"),
    verdict="proved",
    candidate=candidate(),
)
