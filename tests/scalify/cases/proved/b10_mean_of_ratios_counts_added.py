"""B10 where all ranks have the same count, and the baseline adds it up rank by rank."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    loss, count = p.input("loss", "f32", (2,)), p.input("count", "f32", ())
    p.output("loss", p.add("div", p.total(loss, 0), p.add("add", count, count)))
    return p.graph()


PAIR = replace(
    load_pair("proved/b10_mean_of_ratios_equal_counts"),
    baseline=baseline(),
)
