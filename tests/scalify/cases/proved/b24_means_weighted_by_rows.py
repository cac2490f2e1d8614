"""B24 as it should be: the means of two rows and of one row, weighted by their rows."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program()
    x = p.input("x", "f32", (3, 4))
    first = p.add("mul", p.mean(p.cut(x, 0, 0, 2), 0, 1), 2.0)
    p.output("mean", p.add("div", p.add("add", first, p.mean(p.cut(x, 0, 2, 1), 0, 1)), 3.0))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b24_mean_of_unequal_means"),
    verdict="proved",
    candidate=candidate(),
)
