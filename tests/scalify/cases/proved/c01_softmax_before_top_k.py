"""Control: the softmax of all, its best k renormalised, are the softmax of the best k."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    weights = p.add("softmax", p.input("logits", "f32", (5, 7)), axis=1)
    best = p.add("topk_values", weights, k=3, axis=1)
    p.output("weights", p.add("div", best, p.total(best, 1, keepdims=True)))
    p.output("experts", p.add("topk_indices", weights, k=3, axis=1))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    logits = p.input("logits", "f32", (5, 7))
    p.output("weights", p.add("softmax", p.add("topk_values", logits, k=3, axis=1), axis=1))
    p.output("experts", p.add("topk_indices", logits, k=3, axis=1))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"logits": replicated},
    outputs={"weights": replicated, "experts": replicated},
)
