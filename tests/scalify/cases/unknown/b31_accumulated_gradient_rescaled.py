"""B31: the gradient that has been accumulated is divided by the number of micro-batches at every step."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph

COUNT = 4.0


def baseline() -> Graph:
    p = Program()
    first, second = p.input("first", "f32", (6,)), p.input("second", "f32", (6,))
    p.output("grad", p.add("div", p.add("add", first, second), COUNT))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    first, second = p.input("first", "f32", (6,)), p.input("second", "f32", (6,))
    after_one = p.add("div", first, COUNT)
    after_two = p.add("div", p.add("add", after_one, second), COUNT)  # suspect
    p.output("grad", after_two)
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"first": replicated, "second": replicated},
    outputs={"grad": replicated},
)
