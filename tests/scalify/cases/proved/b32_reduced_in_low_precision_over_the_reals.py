"""B32 over the reals: a reduction in bf16 that should be in f32 is the same sum, rounded otherwise.

What is proved is equality over the reals; that the order of cast and reduction changed is another finding.
"""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    grads = p.input("grads", "bf16", (4, 5))
    p.output("grad", p.total(p.add("cast", grads, dtype="f32"), 0))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=4)
    own = p.shaped(p.input("grads", "bf16", (1, 5)), 5)
    p.output("grad", p.add("cast", p.over_ranks(own), dtype="f32"))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grads": sharded(0)},
    outputs={"grad": replicated},
    declared=True,
)
