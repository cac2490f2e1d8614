"""B33 as it should be: a sum that was divided is summed over the replicas."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

FACTOR = 4.0


def candidate() -> Graph:
    p = Program(replica=2, shard=2)
    own = p.shaped(p.input("grads", "f32", (1, 6)), 6)
    divided = p.add("div", p.scattered(own, 0, "shard"), FACTOR)
    p.output("grad", p.over_ranks(divided, "replica"))
    return p.graph()


PAIR = replace(load_pair("unknown/b33_divided_and_averaged"), verdict="proved", candidate=candidate())
