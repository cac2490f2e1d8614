"""B64: text that all ranks hold is attended to by each of them, and so counted once per rank."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph

TEXT, IMAGE = 3, 4


def baseline() -> Graph:
    p = Program()
    q = p.input("q", "f32", (2, 5, 4))
    text = [p.input(f"text_{name}", "f32", (2, TEXT, 4)) for name in "kv"]
    image = [p.input(f"image_{name}", "f32", (2, IMAGE, 4)) for name in "kv"]
    k, v = (p.joined(1, *parts) for parts in zip(text, image, strict=True))
    p.output("y", p.add("attention", q, k, v, scale=0.5))
    return p.graph()


def candidate() -> Graph:
    p = Program(cp=2)
    q = p.input("q", "f32", (2, 5, 4))
    text = [p.input(f"text_{name}", "f32", (2, TEXT, 4)) for name in "kv"]
    image = [p.input(f"image_{name}", "f32", (2, IMAGE // 2, 4)) for name in "kv"]
    k, v = (p.joined(1, *parts) for parts in zip(text, image, strict=True))  # suspect
    scores = p.add("mul", p.product("htd,hsd->hts", q, k), 0.5)
    most = p.over_ranks(p.most(scores, 2, keepdims=True), kind="max")
    powers = p.add("exp", p.add("sub", scores, most))
    total = p.over_ranks(p.total(powers, 2, keepdims=True))  # suspect
    p.output("y", p.add("div", p.over_ranks(p.product("hts,hsd->htd", powers, v)), total))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={
        "q": replicated,
        "text_k": replicated,
        "text_v": replicated,
        "image_k": sharded(1),
        "image_v": sharded(1),
    },
    outputs={"y": replicated},
)
