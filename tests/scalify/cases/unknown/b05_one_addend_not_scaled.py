"""B05: of two losses, one makes up for the ranks that the scale counts, and the other does not."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    main, more = p.input("main", "f32", (8, 3)), p.input("more", "f32", (8, 3))
    p.output("grad", p.add("add", p.total(main, 0), p.add("mul", p.total(more, 0), 0.5)))
    return p.graph()


def candidate() -> Graph:
    p = Program(cp=2)
    main, more = p.input("main", "f32", (4, 3)), p.input("more", "f32", (4, 3))
    of_main = p.add("mul", p.total(main, 0), 2.0)
    of_more = p.add("mul", p.total(more, 0), 0.5)  # suspect
    p.output("grad", p.add("div", p.over_ranks(p.add("add", of_main, of_more)), 2.0))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"main": sharded(0), "more": sharded(0)},
    outputs={"grad": replicated},
)
MISPLACED = "the sum is blamed, and not the addend whose factor is wrong"
