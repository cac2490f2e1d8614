"""B10 as it should be, beside another loss: what both are divided by is one count only once it is summed."""

from scalify_cases import Pair, Program, positive, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    loss, more, count = (p.input(name, "f32", (4,)) for name in ("loss", "more", "count"))
    tokens = p.total(count, 0)
    of_more = p.add("mul", p.add("div", p.total(more, 0), tokens), 0.25)
    p.output("loss", p.add("add", p.add("div", p.total(loss, 0), tokens), of_more))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=2)
    loss, more, count = (p.input(name, "f32", (2,)) for name in ("loss", "more", "count"))
    tokens = p.over_ranks(p.total(count, 0))
    both = p.over_ranks(p.joined(0, *(p.total(x, 0, keepdims=True) for x in (more, count))))
    ratio = p.add("div", p.shaped(p.cut(both, 0, 0, 1)), p.shaped(p.cut(both, 0, 1, 1)))
    of_loss = p.add("div", p.over_ranks(p.total(loss, 0)), tokens)
    p.output("loss", p.add("add", of_loss, p.add("mul", ratio, 0.25)))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"loss": sharded(0), "more": sharded(0), "count": sharded(0)},
    outputs={"loss": replicated},
    draws={"count": positive},
)
