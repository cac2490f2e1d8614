"""B06: a tied weight's gradient is reduced on another data rank in each stage, and the sum over stages adds
what is reduced to what is not."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    grads = p.input("grads", "f32", (4, 3))
    first, last = p.mean(p.cut(grads, 0, 0, 2), 0), p.mean(p.cut(grads, 0, 2, 2), 0)
    p.output("grad", p.add("add", first, last))
    return p.graph()


def candidate() -> Graph:
    p = Program(pp=2, dp=2)
    grad = p.shaped(p.input("grads", "f32", (1, 3)), 3)
    reduced = p.over_ranks(grad, "dp", kind="avg")
    owner = p.add("ne", p.place_on("dp"), p.place_on("pp"))
    held = p.add("where", owner, reduced, grad)  # suspect
    p.output("grad", p.over_ranks(held, "pp"))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grads": sharded(0)},
    outputs={"grad": replicated},
)
