"""B68: the last stage has not loaded the embedding that its tied head needs: it holds something else."""

from scalify_cases import Pair, Program, replicated, replicated_of

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    hidden, table = p.input("hidden", "f32", (5, 6)), p.input("embedding", "f32", (9, 6), role="parameter")
    p.input("uninitialised", "f32", (9, 6))
    p.output("logits", p.product("tm,vm->tv", hidden, table))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    hidden, head = p.input("hidden", "f32", (5, 6)), p.input("head", "f32", (9, 6), role="parameter")
    p.output("logits", p.product("tm,vm->tv", hidden, head))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"hidden": replicated, "head": replicated_of("uninitialised")},
    outputs={"logits": replicated},
)
