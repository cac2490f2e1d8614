"""Which programs are told apart, and which must not be: overflow, poles, ties, rounding, unknown results."""

import pytest
from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph, NodeId
from scalify.refute.budget import Search
from scalify.refute.refute import refute
from scalify.verdict import Reason, Refuted, Unknown, Verdict

UNKNOWN = Unknown(reason=Reason.UNPROVED, outputs=(), assumptions=())


def searched(pair: Pair, draws: int = 48) -> Verdict:
    """What values alone say of a pair: the proof is left out."""
    return refute(pair.baseline, pair.candidate, pair.relations(), UNKNOWN, Search(draws=draws))


def alone(baseline: Graph, candidate: Graph) -> Pair:
    """Both on one device, inputs and outputs of the same names."""
    names = [str(node.attrs["name"]) for node in candidate.inputs()]
    return Pair(
        verdict="unknown",
        baseline=baseline,
        candidate=candidate,
        inputs=dict.fromkeys(names, replicated),
        outputs=dict.fromkeys([output.name for output in candidate.outputs], replicated),
    )


def program(*steps: str, constant: float = 2.0) -> Graph:
    """Elementwise steps on ``x``; one with two operands takes the constant."""
    p = Program()
    value = p.input("x", "f32", (4, 6))
    for step in steps:
        op, _, _ = step.partition(" ")
        value = p.add(op, value, constant) if step.endswith(" c") else p.add(op, value)
    p.output("y", value)
    return p.graph()


def test_a_difference_is_found_and_said_in_numbers():
    verdict = searched(alone(program("mul c"), program("mul c", "mul c")))
    assert isinstance(verdict, Refuted)
    assert verdict.witness.outputs[0].pattern == "2 times the baseline's"
    difference = verdict.witness.difference
    assert difference.found == 2 * difference.expected
    assert difference.index == difference.baseline_index


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        (("abs", "exp", "exp", "exp", "exp", "exp"), ("abs", "exp", "exp", "exp", "exp", "exp", "mul c")),
        (("log",), ("log", "exp", "log")),  # NaN where x is negative; equal where it is not
        (("relu",), ("relu", "exp", "log", "exp", "log")),
    ],
)
def test_what_overflows_or_has_no_value_is_not_called_different(
    baseline: tuple[str, ...], candidate: tuple[str, ...]
):
    assert isinstance(searched(alone(program(*baseline), program(*candidate))), Unknown)


def test_a_candidate_that_overflows_is_not_called_different():
    """exp(800 x) / exp(400 x) is exp(400 x), and no double holds what is divided."""
    big = program("mul c", "exp", constant=400.0)
    p = Program()
    x = p.input("x", "f32", (4, 6))
    wide = p.add("exp", p.add("mul", x, 800.0))
    p.output("y", p.add("div", wide, p.add("exp", p.add("mul", x, 400.0))))
    assert isinstance(searched(alone(big, p.graph())), Unknown)


def test_a_candidate_that_divides_zero_by_zero_is_different():
    p, q = Program(), Program()
    for each in (p, q):
        x = each.input("x", "f32", (4, 6))
        over = each.add("sub", x, x) if each is q else each.add("abs", x)
        each.output("y", each.add("div", over, over))
    verdict = searched(alone(p.graph(), q.graph()))
    assert isinstance(verdict, Refuted)
    assert verdict.witness.difference.found is None


def test_sums_in_another_order_are_equal_although_their_bits_differ():
    def summed(first: bool) -> Graph:
        p = Program()
        x = p.input("x", "f32", (64, 33))
        scaled = p.add("mul", p.add("exp", p.add("mul", x, 7.3)), 0.1)
        total = p.total(p.total(scaled, 0), 0) if first else p.total(p.total(scaled, 1), 0)
        p.output("y", p.add("sub", total, p.total(scaled, 0, 1)) if first else p.add("sub", total, total))
        return p.graph()

    # All that is left is rounding: 1e-16 of the sums on one side, zero on the other.
    assert isinstance(searched(alone(summed(True), summed(False))), Unknown)


def test_a_constant_rounded_to_fewer_bits_is_no_difference_but_another_constant_is():
    single = 0.10000000149011612
    assert isinstance(
        searched(alone(program("mul c", constant=0.1), program("mul c", constant=single))), Unknown
    )
    assert isinstance(
        searched(alone(program("mul c", constant=0.1), program("mul c", constant=0.11))), Refuted
    )


def test_a_masked_row_means_nothing_whatever_fills_it():
    def attention(fill: float) -> Graph:
        p = Program()
        scores, mask = p.input("scores", "f32", (4, 6)), p.input("mask", "bool", (4, 6))
        p.output("y", p.add("softmax", p.add("where", mask, scores, fill), axis=1))
        return p.graph()

    fills = [attention(fill) for fill in (-3.4028234663852886e38, float("-inf"), -1e9)]
    for one in fills:
        for other in fills:
            assert isinstance(searched(alone(one, other)), Unknown)


def test_a_mask_that_lets_more_through_is_told_apart():
    def attention(width: int) -> Graph:
        p = Program()
        scores, row, column = p.input("scores", "f32", (6, 6)), p.counter(0, 6, 6), p.counter(1, 6, 6)
        near = p.add("lt", p.add("sub", row, column), width)
        p.output("y", p.add("softmax", p.add("where", near, scores, -1e9), axis=1))
        return p.graph()

    assert isinstance(searched(alone(attention(3), attention(4))), Refuted)


def test_the_same_draw_is_equal_to_itself_and_nothing_is_said_of_others():
    def noisy(key: str) -> Graph:
        p = Program()
        x = p.input("x", "f32", (4, 6))
        noise = p.add("random", dtype="f32", shape=(4, 6), key=key, kind="normal")
        p.output("y", p.add("mul", x, noise))
        p.output("z", p.add("mul", x, 2.0 if key == "one" else 3.0))
        return p.graph()

    verdict = searched(alone(noisy("one"), noisy("two")))
    assert isinstance(verdict, Refuted)
    assert [output.candidate for output in verdict.witness.outputs] == ["z"]


def test_results_of_unknown_operations_are_not_compared():
    def unknown(factor: float) -> Graph:
        p = Program()
        x = p.input("x", "f32", (4,))
        y = p.add("opaque", x, target="vendor.act", config="", dtype="f32", shape=(4,))
        p.output("y", p.add("mul", y, factor))
        return p.graph()

    assert isinstance(searched(alone(unknown(1.0), unknown(2.0))), Unknown)


def uninitialised(p: Program) -> NodeId:
    return p.add("opaque", target="uninitialised", config="", dtype="f32", shape=(4,))


def test_what_memory_held_may_be_anything():
    p, q = Program(), Program()
    p.output("y", p.add("mul", p.input("x", "f32", (4,)), 2.0))
    q.output("y", q.add("add", q.add("mul", q.input("x", "f32", (4,)), 2.0), uninitialised(q)))
    verdict = searched(alone(p.graph(), q.graph()))
    assert isinstance(verdict, Refuted)
    assert any("never written" in free for free in verdict.witness.free)


def test_what_a_baseline_makes_of_garbage_is_not_asked_of_the_candidate():
    p, q = Program(), Program()
    p.output("y", p.add("add", p.input("x", "f32", (4,)), uninitialised(p)))
    q.output("y", q.input("x", "f32", (4,)))
    assert isinstance(searched(alone(p.graph(), q.graph())), Unknown)


def test_memory_that_is_written_to_throughout_holds_no_garbage():
    p, q = Program(), Program()
    p.output("y", p.add("mul", p.input("x", "f32", (4,)), 2.0))
    x = q.input("x", "f32", (4,))
    q.output("y", q.add("update_slice", uninitialised(q), q.add("mul", x, 3.0), starts=(0,)))
    assert isinstance(searched(alone(p.graph(), q.graph())), Refuted)
    assert isinstance(searched(alone(q.graph(), p.graph())), Refuted)


def test_a_shard_is_read_where_it_has_no_row():
    p, q = Program(), Program(tp=2)
    for each, rows in ((p, 8), (q, 4)):
        table = each.input("table", "f32", (rows, 3), role="parameter")
        each.output("y", each.add("take", table, each.input("ids", "i64", (5,)), axis=0))
    pair = Pair(
        verdict="unknown",
        baseline=p.graph(),
        candidate=q.graph(),
        inputs={"table": sharded(0), "ids": replicated},
        outputs={"y": replicated},
    )
    verdict = searched(pair)
    assert isinstance(verdict, Refuted)
    assert "among 4" in verdict.witness.beyond


def test_ties_that_are_broken_otherwise_are_no_difference():
    """Of equal elements, which one is the greatest is not said; noise breaks all ties."""

    def greatest(flipped: bool) -> Graph:
        p = Program()
        x = p.input("x", "f32", (3, 5))
        doubled = p.joined(1, x, x)  # every element twice
        if flipped:
            place = p.add("argmax", p.add("reverse", doubled, axes=(1,)), axis=1, keepdims=False)
            p.output("y", p.add("sub", 9, place))
        else:
            p.output("y", p.add("argmax", doubled, axis=1, keepdims=False))
        return p.graph()

    # The first of two equal ones against the last: a real difference of these graphs, as ops are defined ...
    assert isinstance(searched(alone(greatest(False), greatest(True))), Refuted)
    # ... and none between a graph and itself.
    assert isinstance(searched(alone(greatest(True), greatest(True))), Unknown)
