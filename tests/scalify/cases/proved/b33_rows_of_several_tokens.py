"""B33 as it should be, where every rank first sums the gradients of its own tokens."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph

FACTOR = 4.0


def baseline() -> Graph:
    p = Program()
    p.output("grad", p.add("div", p.total(p.input("grads", "f32", (8, 6)), 0), FACTOR))
    return p.graph()


def candidate() -> Graph:
    p = Program(replica=2, shard=2)
    own = p.total(p.input("grads", "f32", (2, 6)), 0)
    divided = p.add("div", p.scattered(own, 0, "shard"), FACTOR)
    p.output("grad", p.over_ranks(divided, "replica"))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grads": sharded(0)},
    outputs={"grad": sharded(0, "shard")},
)
