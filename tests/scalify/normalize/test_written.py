"""What every rank writes at its own place and reads there again."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph
from scalify.ir.mesh import RankInt
from scalify.prove.verify import verify
from scalify.verdict import Proved, Unknown

OWN = RankInt(base=0, terms=((1, 4, 2),))
OTHER = RankInt(base=0, terms=((1, 2, 2),))


def baseline() -> Graph:
    p = Program()
    x = p.input("x", "f32", (8,))
    p.output("y", p.add("mul", x, 2.0))
    return p.graph()


def candidate(start: RankInt) -> Graph:
    p = Program(dp=4)
    x = p.input("x", "f32", (8,))
    new = p.add("mul", p.own_piece(x, 0), 2.0)
    written = p.add("update_slice", x, new, starts=(start,))
    p.output("y", p.gathered(p.own_piece(written, 0), 0))
    return p.graph()


def pair(start: RankInt) -> Pair:
    return Pair(
        verdict="proved",
        baseline=baseline(),
        candidate=candidate(start),
        inputs={"x": replicated},
        outputs={"y": replicated},
    )


def test_it_is_read_as_what_was_written() -> None:
    right = pair(OWN)
    assert not right.differing()
    assert isinstance(verify(right.baseline, right.candidate, right.relations()), Proved)


def test_another_place_is_not() -> None:
    wrong = pair(OTHER)
    assert wrong.differing() == ("y",)
    assert isinstance(verify(wrong.baseline, wrong.candidate, wrong.relations()), Unknown)
