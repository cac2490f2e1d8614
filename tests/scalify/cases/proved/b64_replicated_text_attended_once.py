"""B64 as it should be: sums over ranks are of the image's keys, and those of the text are added once."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

TEXT, IMAGE = 3, 4


def candidate() -> Graph:
    p = Program(cp=2)
    q = p.input("q", "f32", (2, 5, 4))
    text = [p.input(f"text_{name}", "f32", (2, TEXT, 4)) for name in "kv"]
    image = [p.input(f"image_{name}", "f32", (2, IMAGE // 2, 4)) for name in "kv"]
    of_text, of_image = (p.add("mul", p.product("htd,hsd->hts", q, k), 0.5) for k in (text[0], image[0]))
    of_all = p.over_ranks(p.most(of_image, 2, keepdims=True), kind="max")
    most = p.add("max", p.most(of_text, 2, keepdims=True), of_all)
    here, there = (p.add("exp", p.add("sub", scores, most)) for scores in (of_text, of_image))
    total = p.add("add", p.total(here, 2, keepdims=True), p.over_ranks(p.total(there, 2, keepdims=True)))
    mixed = p.over_ranks(p.product("hts,hsd->htd", there, image[1]))
    p.output("y", p.add("div", p.add("add", p.product("hts,hsd->htd", here, text[1]), mixed), total))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b64_replicated_text_attended_twice"), verdict="proved", candidate=candidate()
)
