"""Sums over two texts by themselves are the sum over both."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph
from scalify.prove.verify import verify
from scalify.verdict import Proved


def gradient(*starts: int) -> Graph:
    """Of one weight, of all texts at once or of some by themselves; a text has five tokens."""
    p = Program()
    x, up = p.input("x", "f32", (2, 5, 3)), p.input("up", "f32", (2, 5, 4))
    parts = [[p.add("tanh", p.cut(each, 0, start, 1)) for each in (x, up)] for start in starts]
    parts = parts or [[p.add("tanh", each) for each in (x, up)]]
    total, *rest = [p.product("bti,bto->io", *part) for part in parts]
    for each in rest:
        total = p.add("add", total, each)
    p.output("y", total)
    return p.graph()


def is_proved(*starts: int) -> bool:
    held = {"x": replicated, "up": replicated}
    pair = Pair(
        verdict="proved",
        baseline=gradient(),
        candidate=gradient(*starts),
        inputs=held,
        outputs={"y": replicated},
    )
    return isinstance(verify(pair.baseline, pair.candidate, pair.relations()), Proved)


def test_gradients_of_texts_by_themselves_are_added() -> None:
    assert is_proved(0, 1)
    assert is_proved(1, 0)


def test_a_text_that_is_counted_twice_is_noticed() -> None:
    assert not is_proved(0, 0)
    assert not is_proved(0)
