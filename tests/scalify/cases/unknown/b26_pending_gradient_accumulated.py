"""B26: a gradient is added up as if every rank held all of it; it is a pending sum of vocabulary shards."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    grad, w = p.input("grad", "f32", (5, 8)), p.input("w", "f32", (8, 6), role="parameter")
    before = p.input("before", "f32", (5, 6))
    p.output("dx", p.add("add", before, p.product("tv,vm->tm", grad, w)))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    grad, w = p.input("grad", "f32", (5, 4)), p.input("w", "f32", (4, 6), role="parameter")
    before = p.input("before", "f32", (5, 6))
    own = p.product("tv,vm->tm", grad, w)
    p.output("dx", p.add("add", before, own))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grad": sharded(1), "w": sharded(0), "before": replicated},
    outputs={"dx": replicated},
)
