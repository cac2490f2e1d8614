"""Each likely mistake in a small pair: the line that makes it is the suspect, and the guess names it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from scalify_cases import (
    Layout,
    Pair,
    Program,
    case_names,
    fused,
    load_pair,
    replicated,
    sharded,
    suspect_lines,
)

from scalify.ir.graph import Graph, NodeId
from scalify.prove.verify import verify
from scalify.verdict import Suspect, Unknown

MARK = "# wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """Two programs, of which the second has a line that ends in ``# wrong``; words of the guess."""

    baseline: Callable[[Program], None]
    candidate: Callable[[Program], None]
    mesh: Mapping[str, int]
    inputs: Mapping[str, Layout]
    outputs: Mapping[str, Layout]
    words: tuple[str, ...]

    def suspect(self) -> Suspect:
        """What the verdict blames."""
        pair = Pair(
            verdict="unknown",
            baseline=_made(self.baseline, {}),
            candidate=_made(self.candidate, self.mesh),
            inputs=self.inputs,
            outputs=self.outputs,
        )
        verdict = verify(pair.baseline, pair.candidate, pair.relations())
        assert isinstance(verdict, Unknown)
        assert verdict.suspect is not None
        return verdict.suspect

    def line(self) -> int:
        """The line that is wrong."""
        lines, first = inspect.getsourcelines(self.candidate)
        (found,) = [first + place for place, line in enumerate(lines) if line.rstrip().endswith(MARK)]
        return found


def _made(write: Callable[[Program], None], mesh: Mapping[str, int]) -> Graph:
    program = Program(**mesh)
    write(program)
    return program.graph()


def _x(p: Program, *shape: int) -> NodeId:
    return p.input("x", "f32", shape)


def _weight(p: Program, name: str, *shape: int) -> NodeId:
    return p.input(name, "f32", shape, role="parameter")


def mlp(p: Program) -> None:
    x, up, down = _x(p, 8, 6), _weight(p, "up", 6, 16), _weight(p, "down", 16, 6)
    hidden = p.add("relu", p.product("ti,io->to", x, up))
    p.output("y", p.add("tanh", p.add("add", p.product("ti,io->to", hidden, down), x)))


SHARDED_MLP = {"x": replicated, "up": sharded(1), "down": sharded(0)}


def no_all_reduce(p: Program) -> None:
    x, up, down = _x(p, 8, 6), _weight(p, "up", 6, 4), _weight(p, "down", 4, 6)
    hidden = p.add("relu", p.product("ti,io->to", x, up))
    part = p.product("ti,io->to", hidden, down)
    both = p.add("add", part, x)  # wrong
    p.output("y", p.add("tanh", both))


def maximum_over_ranks(p: Program) -> None:
    x, up, down = _x(p, 8, 6), _weight(p, "up", 6, 4), _weight(p, "down", 4, 6)
    hidden = p.add("relu", p.product("ti,io->to", x, up))
    part = p.product("ti,io->to", hidden, down)
    total = p.over_ranks(part, kind="max")  # wrong
    p.output("y", p.add("tanh", p.add("add", total, x)))


def half_of_the_ranks(p: Program) -> None:
    x, up, down = _x(p, 8, 6), _weight(p, "up", 6, 4), _weight(p, "down", 4, 6)
    hidden = p.add("relu", p.product("ti,io->to", x, up))
    part = p.product("ti,io->to", hidden, down)
    total = p.add("all_reduce", part, kind="sum", groups=((0, 1), (2, 3)))  # wrong
    p.output("y", p.add("tanh", p.add("add", total, x)))


def ranks_of_the_other_axis(p: Program) -> None:
    x, up, down = _x(p, 4, 6), _weight(p, "up", 6, 8), _weight(p, "down", 8, 6)
    hidden = p.add("relu", p.product("ti,io->to", x, up))
    part = p.product("ti,io->to", hidden, down)
    total = p.over_ranks(part, "dp")  # wrong
    p.output("y", p.add("tanh", p.add("add", total, x)))


def residual_on_every_rank(p: Program) -> None:
    x, up, down = _x(p, 8, 6), _weight(p, "up", 6, 4), _weight(p, "down", 4, 6)
    hidden = p.add("relu", p.product("ti,io->to", x, up))
    both = p.add("add", p.product("ti,io->to", hidden, down), x)  # wrong
    p.output("y", p.add("tanh", p.over_ranks(both)))


def norm(p: Program) -> None:
    x, gain = _x(p, 8, 6), _weight(p, "gain", 6)
    mean = p.add("div", p.total(p.add("square", x), 1, keepdims=True), 6.0)
    p.output("y", p.add("mul", p.add("mul", x, p.add("rsqrt", p.add("add", mean, 0.5))), gain))


def divided_by_what_a_rank_holds(p: Program) -> None:
    x, gain = _x(p, 8, 3), _weight(p, "gain", 3)
    total = p.over_ranks(p.total(p.add("square", x), 1, keepdims=True))
    mean = p.add("div", total, 3.0)  # wrong
    p.output("y", p.add("mul", p.add("mul", x, p.add("rsqrt", p.add("add", mean, 0.5))), gain))


def other_epsilon(p: Program) -> None:
    x, gain = _x(p, 8, 3), _weight(p, "gain", 3)
    mean = p.add("div", p.over_ranks(p.total(p.add("square", x), 1, keepdims=True)), 6.0)
    small = p.add("add", mean, 0.25)  # wrong
    p.output("y", p.add("mul", p.add("mul", x, p.add("rsqrt", small)), gain))


def counted(p: Program) -> None:
    x, w = _x(p, 8, 6), _weight(p, "w", 6)
    p.output("y", p.add("exp", p.product("ti,i->t", x, w)))


def counted_on_every_rank(p: Program) -> None:
    x, w = _x(p, 8, 6), _weight(p, "w", 6)
    total = p.over_ranks(p.product("ti,i->t", x, w))  # wrong
    p.output("y", p.add("exp", total))


def rows_added_up(p: Program) -> None:
    x, w = _x(p, 4, 6), _weight(p, "w", 6, 6)
    total = p.over_ranks(p.product("ti,io->to", x, w))  # wrong
    p.output("y", p.add("exp", total))


def every_row(p: Program) -> None:
    x, w = _x(p, 8, 6), _weight(p, "w", 6, 6)
    p.output("y", p.add("exp", p.product("ti,io->to", x, w)))


def extremes(p: Program) -> None:
    p.output("y", p.add("exp", p.most(_x(p, 8, 6), 1)))


def least(p: Program) -> None:
    lowest = p.add("reduce", _x(p, 4, 6), kind="min", axes=(1,))  # wrong
    p.output("y", p.add("exp", lowest))


def rotated(p: Program) -> None:
    x = _x(p, 8, 8)
    low, high = p.cut(x, 1, 0, 4), p.cut(x, 1, 4, 4)
    p.output("y", p.add("add", p.add("sin", low), p.add("cos", high)))


def rotated_by_one(p: Program) -> None:
    x = _x(p, 4, 8)
    low = p.cut(x, 1, 0, 4)
    high = p.cut(x, 1, 3, 4)  # wrong
    p.output("y", p.add("add", p.add("sin", low), p.add("cos", high)))


def turned(p: Program) -> None:
    x, w = _x(p, 4, 4, 8), _weight(p, "w", 4, 8)
    heads = p.turned(p.add("relu", x), 1, 0, 2)
    p.output("y", p.add("tanh", p.product("hti,hi->ht", heads, w)))


def turned_otherwise(p: Program) -> None:
    x, w = _x(p, 4, 4, 4), _weight(p, "w", 4, 4)
    heads = p.turned(p.add("relu", x), 0, 1, 2)  # wrong
    p.output("y", p.add("tanh", p.product("hti,hi->ht", heads, w)))


def gathered(p: Program) -> None:
    x, w = _x(p, 8, 8), _weight(p, "w", 8, 8)
    hidden = p.add("relu", p.product("ti,io->to", x, w))
    p.output("y", p.add("softmax", hidden, axis=1))


def gathered_along_the_rows(p: Program) -> None:
    x, w = _x(p, 8, 8), _weight(p, "w", 8, 4)
    hidden = p.add("relu", p.product("ti,io->to", x, w))
    whole = p.gathered(hidden, 0)  # wrong
    p.output("y", p.add("softmax", p.shaped(whole, 8, 8), axis=1))


def rows_of_a_column_shard(p: Program) -> None:
    x, up, down = _x(p, 8, 6), _weight(p, "up", 6, 4), _weight(p, "down", 4, 6)
    hidden = p.add("relu", p.product("ti,io->to", x, up))
    part = p.product("ti,io->to", hidden, down)  # wrong
    p.output("y", p.add("tanh", p.add("add", p.over_ranks(part), x)))


def fused_gate(p: Program) -> None:
    x, w = _x(p, 8, 6), _weight(p, "w", 6, 16)
    both = p.product("ti,io->to", x, w)
    gate, up = p.cut(both, 1, 0, 8), p.cut(both, 1, 8, 8)
    p.output("y", p.add("mul", p.add("silu", gate), up))


def fused_gate_on_ranks(p: Program) -> None:
    x, w = _x(p, 8, 6), _weight(p, "w", 6, 8)
    both = p.product("ti,io->to", x, w)
    gate = p.cut(both, 1, 0, 4)  # wrong
    p.output("y", p.add("mul", p.add("silu", gate), p.cut(both, 1, 4, 4)))


def fused_gate_across(p: Program) -> None:
    x, w = _x(p, 8, 6), _weight(p, "w", 6, 8)
    both = p.product("ti,io->to", x, w)
    gate = p.cut(both, 1, 2, 4)  # wrong
    p.output("y", p.add("mul", p.add("silu", gate), p.cut(both, 1, 4, 4)))


def halves(p: Program) -> None:
    x = _x(p, 8, 8)
    low, high = p.add("sin", p.cut(x, 1, 0, 4)), p.add("cos", p.cut(x, 1, 4, 4))
    p.output("y", p.add("mul", p.joined(1, low, high), x))


def halves_swapped(p: Program) -> None:
    x = _x(p, 4, 8)
    low, high = p.add("sin", p.cut(x, 1, 0, 4)), p.add("cos", p.cut(x, 1, 4, 4))
    both = p.joined(1, high, low)  # wrong
    p.output("y", p.add("mul", both, x))


def two_results(p: Program) -> None:
    x = _x(p, 8, 6)
    p.output("k", p.add("sin", x))
    p.output("v", p.add("cos", x))


def two_results_swapped(p: Program) -> None:
    x = _x(p, 4, 6)
    first = p.add("cos", x)  # wrong
    p.output("k", first)
    p.output("v", p.add("sin", x))


def difference(p: Program) -> None:
    x, w = _x(p, 8, 6), _weight(p, "w", 6)
    p.output("y", p.add("exp", p.add("sub", p.add("sin", x), p.add("cos", w))))


def difference_swapped(p: Program) -> None:
    x, w = _x(p, 4, 6), _weight(p, "w", 6)
    less = p.add("sub", p.add("cos", w), p.add("sin", x))  # wrong
    p.output("y", p.add("exp", less))


def summed_instead(p: Program) -> None:
    x, w = _x(p, 4, 6), _weight(p, "w", 6)
    more = p.add("add", p.add("sin", x), p.add("cos", w))  # wrong
    p.output("y", p.add("exp", more))


def two_sums(p: Program) -> None:
    x, z = _x(p, 8, 6), _weight(p, "z", 8, 6)
    p.output("y", p.add("exp", p.add("add", p.total(x, 0), p.total(z, 0))))


def two_sums_of_which_one_is_scaled(p: Program) -> None:
    x, z = _x(p, 4, 6), _weight(p, "z", 4, 6)
    scaled = p.add("mul", p.total(x, 0), 2.0)
    both = p.add("add", scaled, p.total(z, 0))  # wrong
    p.output("y", p.add("exp", p.over_ranks(both)))


def no_last_all_reduce(p: Program) -> None:
    x, up, down = _x(p, 8, 4), _weight(p, "up", 4, 4), _weight(p, "down", 4, 4)
    hidden = p.add("relu", p.product("ti,io->to", x, up))
    p.output("y", p.product("ti,io->to", hidden, down))  # wrong


def plain_mlp(p: Program) -> None:
    x, up, down = _x(p, 8, 4), _weight(p, "up", 4, 16), _weight(p, "down", 16, 4)
    p.output("y", p.product("ti,io->to", p.add("relu", p.product("ti,io->to", x, up)), down))


TP = {"tp": 2}
SAME = {"y": replicated}
ROWS = {"x": sharded(0)}
CATALOGUE = {
    "missing all-reduce": Mistake(
        baseline=mlp, candidate=no_all_reduce, mesh={"tp": 4}, inputs=SHARDED_MLP, outputs=SAME,
        words=("missing all-reduce after einsum_", "summed over 4 ranks"),
    ),
    "missing last all-reduce": Mistake(
        baseline=plain_mlp, candidate=no_last_all_reduce, mesh={"tp": 4}, inputs=SHARDED_MLP, outputs=SAME,
        words=("missing all-reduce after einsum_", "summed over 4 ranks"),
    ),
    "residual under a pending sum": Mistake(
        baseline=mlp, candidate=residual_on_every_rank, mesh={"tp": 4}, inputs=SHARDED_MLP, outputs=SAME,
        words=("counted once per rank (4 times): x", "after the all-reduce, or on one rank"),
    ),
    "wrong combination": Mistake(
        baseline=mlp, candidate=maximum_over_ranks, mesh={"tp": 4}, inputs=SHARDED_MLP, outputs=SAME,
        words=("wrong operator", "by max where a sum is pending"),
    ),
    "group too small": Mistake(
        baseline=mlp, candidate=half_of_the_ranks, mesh={"tp": 4}, inputs=SHARDED_MLP, outputs=SAME,
        words=("wrong group", "over 2 of 4 ranks", "{0,1},{2,3}"),
    ),
    "group of another axis": Mistake(
        baseline=mlp, candidate=ranks_of_the_other_axis, mesh={"dp": 2, "tp": 2},
        inputs={"x": sharded(0, "dp"), "up": sharded(1, "tp"), "down": sharded(0, "tp")},
        outputs={"y": sharded(0, "dp")}, words=("wrong group", "{0,2},{1,3}"),
    ),
    "wrong divisor": Mistake(
        baseline=norm, candidate=divided_by_what_a_rank_holds, mesh=TP,
        inputs={"x": sharded(1), "gain": sharded(0)}, outputs={"y": sharded(1)},
        words=("different constant", "3.0 where the baseline has 6.0"),
    ),
    "different constant": Mistake(
        baseline=norm, candidate=other_epsilon, mesh=TP,
        inputs={"x": sharded(1), "gain": sharded(0)}, outputs={"y": sharded(1)},
        words=("different constant", "0.25 where the baseline has 0.5"),
    ),
    "counted once per rank": Mistake(
        baseline=counted, candidate=counted_on_every_rank, mesh=TP,
        inputs={"x": replicated, "w": replicated}, outputs=SAME,
        words=("counted once per rank", "2 times the baseline's value"),
    ),
    "different rows added up": Mistake(
        baseline=every_row, candidate=rows_added_up, mesh=TP, inputs={**ROWS, "w": replicated},
        outputs={"y": sharded(0)},
        words=("wrong group", "hold different parts", "dimension 0 sharded over tp"),
    ),
    "wrong kind of reduction": Mistake(
        baseline=extremes, candidate=least, mesh=TP, inputs=ROWS, outputs={"y": sharded(0)},
        words=("reduces with min where the baseline reduces with max",),
    ),
    "wrong operation": Mistake(
        baseline=difference, candidate=summed_instead, mesh=TP, inputs={**ROWS, "w": replicated},
        outputs={"y": sharded(0)}, words=("wrong operator", "add where the baseline has sub"),
    ),
    "moved window": Mistake(
        baseline=rotated, candidate=rotated_by_one, mesh=TP, inputs=ROWS, outputs={"y": sharded(0)},
        words=("moved window", "from 3 to 7", "from 4 to 8"),
    ),
    "swapped transpose": Mistake(
        baseline=turned, candidate=turned_otherwise, mesh=TP, inputs={"x": sharded(2), "w": sharded(1)},
        outputs=SAME, words=("swapped transpose", "(0, 1, 2) where the baseline does by (1, 0, 2)"),
    ),
    "wrong shard of a weight": Mistake(
        baseline=mlp, candidate=rows_of_a_column_shard, mesh={"tp": 4},
        inputs={**SHARDED_MLP, "up": fused(1, 8, 8)}, outputs=SAME,
        words=("wrong shard dimension", "letter i of ti,io->to", "0 holds 1 of 4 blocks of each part"),
    ),
    "gathered along another dimension": Mistake(
        baseline=gathered, candidate=gathered_along_the_rows, mesh=TP,
        inputs={"x": replicated, "w": sharded(1)}, outputs=SAME,
        words=("wrong shard dimension", "along dimension 0, the value is cut in dimension 1"),
    ),
    "fused parts sharded as one": Mistake(
        baseline=fused_gate, candidate=fused_gate_on_ranks, mesh=TP,
        inputs={"x": replicated, "w": sharded(1)}, outputs={"y": sharded(1)},
        words=("wrong fused order", "reads 8 of 16"),
    ),
    "window across fused parts": Mistake(
        baseline=fused_gate, candidate=fused_gate_across, mesh=TP,
        inputs={"x": replicated, "w": fused(1, 8, 8)}, outputs={"y": sharded(1)},
        words=("moved window", "from 2 to 6", "from 0 to 8"),
    ),
    "concatenated in another order": Mistake(
        baseline=halves, candidate=halves_swapped, mesh=TP, inputs=ROWS, outputs={"y": sharded(0)},
        words=("wrong fused order", "follow each other"),
    ),
    "operands swapped": Mistake(
        baseline=difference, candidate=difference_swapped, mesh=TP, inputs={**ROWS, "w": replicated},
        outputs={"y": sharded(0)}, words=("operands are swapped",),
    ),
    "one addend scaled": Mistake(
        baseline=two_sums, candidate=two_sums_of_which_one_is_scaled, mesh=TP,
        inputs={**ROWS, "z": sharded(0)}, outputs=SAME,
        words=("wrong divisor or factor", "2 times, 1 times the baseline's values"),
    ),
    "results swapped": Mistake(
        baseline=two_results, candidate=two_results_swapped, mesh=TP, inputs=ROWS,
        outputs={"k": sharded(0), "v": sharded(0)},
        words=("outputs are swapped", "k is the baseline's output v"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CATALOGUE)
def test_line_and_guess(name: str) -> None:
    mistake = CATALOGUE[name]
    suspect = mistake.suspect()
    assert suspect.candidate.site is not None
    assert (suspect.candidate.site.line, suspect.guess) == (mistake.line(), suspect.guess)
    assert [word for word in mistake.words if word not in suspect.guess] == [], suspect.guess


def test_facts_of_a_suspect() -> None:
    suspect = CATALOGUE["missing all-reduce"].suspect()
    assert suspect.known[0].endswith("the baseline's einsum_5, still to be summed over 4 ranks")
    assert suspect.known[1] == "operand 1 (x) is the baseline's x, replicated"
    assert suspect.needed.startswith("the baseline's add_6 (add of einsum_5, x)")
    assert suspect.baseline is not None
    assert suspect.baseline.op == "add"


def test_movements_before_a_suspect_are_shown() -> None:
    def base(p: Program) -> None:
        p.output(
            "y", p.product("ti,ij->tj", p.turned(p.add("relu", _x(p, 4, 4)), 1, 0), _weight(p, "w", 4, 4))
        )

    def other(p: Program) -> None:
        x, w = _x(p, 4, 4), _weight(p, "w", 4, 4)
        turned = p.turned(p.shaped(p.shaped(p.add("relu", x), 2, 2, 4), 4, 4), 1, 0)
        p.output("y", p.product("ti,ij->jt", turned, w))  # wrong

    mistake = Mistake(
        baseline=base,
        candidate=other,
        mesh={},
        inputs={"x": replicated, "w": replicated},
        outputs=SAME,
        words=(),
    )
    suspect = mistake.suspect()
    assert suspect.candidate.site is not None
    assert suspect.candidate.site.line == mistake.line()
    assert [place.op for place in suspect.chain] == ["reshape", "reshape", "transpose", "transpose"]


def test_nine_in_ten_of_the_corpus_of_bugs_are_blamed_on_their_line() -> None:
    names = [name for name in case_names() if name.startswith("unknown/") and suspect_lines(name)]
    missed: list[str] = []
    for name in names:
        pair = load_pair(name)
        verdict = verify(pair.baseline, pair.candidate, pair.relations())
        suspect = verdict.suspect if isinstance(verdict, Unknown) else None
        site = suspect.candidate.site if suspect else None
        if site is None or site.line not in suspect_lines(name):
            missed.append(name)
    assert len(missed) <= len(names) // 10, missed
