"""Control: vocabulary-parallel cross-entropy as Megatron writes it: the target's logit less the maximum."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph
from scalify.ir.mesh import RankInt

ROWS, CLASSES = 5, 8


def candidate() -> Graph:
    p = Program(tp=2)
    logits, target = p.input("logits", "f32", (ROWS, CLASSES // 2)), p.input("target", "i64", (ROWS,))
    most = p.over_ranks(p.most(logits, 1, keepdims=True), kind="max")
    moved = p.add("sub", logits, most)
    total = p.over_ranks(p.total(p.add("exp", moved), 1))
    first = p.constant(RankInt(base=0, terms=((1, 2, CLASSES // 2),)), "i64")
    own = p.add("add", p.counter(1, ROWS, CLASSES // 2), first)
    hit = p.add("eq", own, p.shaped(target, ROWS, 1))
    picked = p.over_ranks(p.total(p.add("where", hit, moved, 0.0), 1))
    loss = p.add("sub", p.add("log", total), picked)
    p.output("loss", p.add("where", p.add("ne", target, -100), loss, 0.0))
    return p.graph()


PAIR = replace(
    load_pair("proved/c09_vocabulary_parallel_loss"),
    candidate=candidate(),
)
