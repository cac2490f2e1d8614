"""B33: a sum that was divided by the given factor is averaged, not summed, over the replicas."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph

FACTOR = 4.0


def baseline() -> Graph:
    p = Program()
    p.output("grad", p.add("div", p.total(p.input("grads", "f32", (4, 6)), 0), FACTOR))
    return p.graph()


def candidate() -> Graph:
    p = Program(replica=2, shard=2)
    own = p.shaped(p.input("grads", "f32", (1, 6)), 6)
    divided = p.add("div", p.scattered(own, 0, "shard"), FACTOR)
    p.output("grad", p.over_ranks(divided, "replica", kind="avg"))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grads": sharded(0)},
    outputs={"grad": sharded(0, "shard")},
)
