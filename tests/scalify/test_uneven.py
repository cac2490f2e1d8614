"""Shards of different sizes, from programs to verdicts: written by hand, and captured from PyTorch."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from uneven import HIDDEN, PARTS, ROWS, WIDE, all_ranks, mlp, on_one, side_by_side, uneven_mlp, whole_mlp

import scalify
from scalify.capture import capture
from scalify.capture.capture import captured
from scalify.capture.target import load_build
from scalify.ir.build import GraphBuilder
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph, NodeId
from scalify.ir.mesh import Mesh
from scalify.load import load_side
from scalify.prove.verify import verify
from scalify.relate.relate import relate
from scalify.relate.stated import Stated, StatedInput, StatedPart, Window
from scalify.verdict import Proved, Refuted, Unknown, Verdict

Ranks = Callable[[int, GraphBuilder], None]


def verdict_of(whole: Callable[[GraphBuilder], None], ranks: int, rank_of: Ranks) -> Verdict:
    return scalify.verify(on_one(whole), side_by_side(ranks, rank_of))


def layouts_of(verdict: Verdict) -> list[str | None]:
    return [output.layout for output in verdict.outputs]


def summed(build: GraphBuilder, value: NodeId, ranks: int, kind: str = "sum") -> NodeId:
    return build.add("all_reduce", value, kind=kind, groups=all_ranks(ranks))


# A perceptron whose ten hidden units lie on four ranks.


def whole_perceptron(build: GraphBuilder) -> None:
    build.output("y", mlp(build, HIDDEN))


def test_columns_then_rows_in_uneven_parts():
    verdict = scalify.verify(whole_mlp(), side_by_side(4, uneven_mlp))
    assert isinstance(verdict, Proved)
    assert [(output.candidate, output.layout) for output in verdict.outputs] == [
        (f"y@rank{rank}", "replicated") for rank in range(4)
    ]
    assert verdict.work.ranks == 4


@pytest.mark.parametrize("parts", [(9, 1), (1, 9), (2, 3, 5), (1,) * 10])
def test_in_any_parts(parts: Sequence[int]):
    ranks = len(parts)
    assert isinstance(
        verdict_of(whole_perceptron, ranks, lambda rank, build: uneven_mlp(rank, build, parts)), Proved
    )


def test_a_missing_sum_is_not_proved():
    verdict = verdict_of(whole_perceptron, 4, lambda rank, build: build.output("y", mlp(build, PARTS[rank])))
    assert isinstance(verdict, Refuted)
    assert verdict.suspect is not None
    assert verdict.suspect.candidate.node == "rank0.einsum_5"


def stacked(order: Sequence[int]) -> Ranks:
    """All partial results are gathered, and those of these ranks summed by hand."""

    def rank_of(rank: int, build: GraphBuilder) -> None:
        own = build.add("reshape", mlp(build, PARTS[rank]), shape=(1, ROWS, WIDE))
        all_of_them = build.add("all_gather", own, dim=0, groups=all_ranks(4))
        parts = [
            build.add(
                "reshape",
                build.add(
                    "slice", all_of_them, starts=(k, 0, 0), limits=(k + 1, ROWS, WIDE), steps=(1, 1, 1)
                ),
                shape=(ROWS, WIDE),
            )
            for k in order
        ]
        total = parts[0]
        for part in parts[1:]:
            total = build.add("add", total, part)
        build.output("y", total)

    return rank_of


def test_each_part_counts_once():
    assert isinstance(verdict_of(whole_perceptron, 4, stacked((0, 1, 2, 3))), Proved)
    assert isinstance(verdict_of(whole_perceptron, 4, stacked((3, 1, 0, 2))), Proved)
    assert isinstance(verdict_of(whole_perceptron, 4, stacked((0, 1, 1, 3))), Refuted)
    assert isinstance(verdict_of(whole_perceptron, 4, stacked((0, 1, 2))), Refuted)


@pytest.mark.xfail(strict=True, reason="a sum over what is put together is not the sum of its parts' sums")
def test_partial_results_gathered_and_reduced():
    def rank_of(rank: int, build: GraphBuilder) -> None:
        own = build.add("reshape", mlp(build, PARTS[rank]), shape=(1, ROWS, WIDE))
        every = build.add("all_gather", own, dim=0, groups=all_ranks(4))
        build.output("y", build.add("reduce", every, kind="sum", axes=(0,), keepdims=False))

    assert isinstance(verdict_of(whole_perceptron, 4, rank_of), Proved)


def biased(build: GraphBuilder, value: NodeId) -> NodeId:
    return build.add("add", value, build.input("bias", "f32", (WIDE,), role="parameter"))


def test_a_bias_is_added_once():
    def whole(build: GraphBuilder) -> None:
        build.output("y", biased(build, mlp(build, HIDDEN)))

    def after(rank: int, build: GraphBuilder) -> None:
        build.output("y", biased(build, summed(build, mlp(build, PARTS[rank]), 4)))

    def before(rank: int, build: GraphBuilder) -> None:
        build.output("y", summed(build, biased(build, mlp(build, PARTS[rank])), 4))

    assert isinstance(verdict_of(whole, 4, after), Proved)
    assert isinstance(verdict_of(whole, 4, before), Refuted)


def test_windows_in_another_order_than_the_ranks_are_another_program():
    """Stated of one of two weights only: units of one rank meet rows of another."""

    def held(name: str, dim: int, order: Sequence[int]) -> list[StatedInput]:
        windows = [Window(dim=dim, start=3 * place, size=PARTS[place]) for place in order]
        return [
            StatedInput(
                candidate=f"{name}@rank{rank}", parts=(StatedPart(baseline=name, splits=(), window=window),)
            )
            for rank, window in enumerate(windows)
        ]

    candidate = side_by_side(4, uneven_mlp)
    up, down = held("up", 1, (1, 0, 2, 3)), held("down", 0, (1, 0, 2, 3))
    right = relate(whole_mlp(), candidate, Stated(inputs=(*up, *down)))
    wrong = relate(whole_mlp(), candidate, Stated(inputs=tuple(up)))

    assert not wrong.undecided
    assert isinstance(verify(whole_mlp(), candidate, right), Proved)
    assert isinstance(verify(whole_mlp(), candidate, wrong), Unknown)


# A batch of three rows on two ranks.


def mean_of(build: GraphBuilder, rows: int) -> NodeId:
    x = build.input("x", "f32", (rows, WIDE))
    return build.add("reduce", x, kind="mean", axes=(0, 1), keepdims=False)


def whole_mean(build: GraphBuilder) -> None:
    build.output("mean", mean_of(build, 3))


def test_a_mean_over_uneven_rows():
    def rank_of(rank: int, build: GraphBuilder) -> None:
        x = build.input("x", "f32", (2 - rank, WIDE))
        total = summed(build, build.add("reduce", x, kind="sum", axes=(0, 1), keepdims=False), 2)
        build.output("mean", build.add("div", total, build.constant(3.0 * WIDE, "f32")))

    verdict = verdict_of(whole_mean, 2, rank_of)
    assert isinstance(verdict, Proved)
    assert layouts_of(verdict) == ["replicated", "replicated"]


def test_a_mean_of_means_of_uneven_rows_is_not_proved():
    """B24: right for even shards only."""

    def rank_of(rows: Sequence[int]) -> Ranks:
        return lambda rank, build: build.output("mean", summed(build, mean_of(build, rows[rank]), 2, "avg"))

    assert isinstance(verdict_of(whole_mean, 2, rank_of((2, 1))), Refuted)
    assert isinstance(
        verdict_of(lambda build: build.output("mean", mean_of(build, 4)), 2, rank_of((2, 2))), Proved
    )


def rows_of(build: GraphBuilder, rows: int) -> NodeId:
    x = build.input("x", "f32", (rows, WIDE))
    w = build.input("w", "f32", (WIDE, WIDE), role="parameter")
    return build.add("tanh", build.add("einsum", x, w, spec="bi,io->bo"))


def whole_rows(build: GraphBuilder) -> None:
    build.output("y", rows_of(build, 5))


def test_uneven_rows_are_windows_of_the_result():
    verdict = verdict_of(whole_rows, 2, lambda rank, build: build.output("y", rows_of(build, 3 - rank)))
    assert isinstance(verdict, Proved)
    assert layouts_of(verdict) == ["rows 0-2 of y", "rows 3-4 of y"]


def padded_gather(order: Sequence[int]) -> Ranks:
    """As PyTorch gathers uneven rows: padded to the largest, and cut apart again."""

    def rank_of(rank: int, build: GraphBuilder) -> None:
        rows = rows_of(build, 3 - rank)
        if rank:
            rows = build.add(
                "pad", rows, build.constant(0.0, "f32"), low=(0, 0), high=(1, 0), interior=(0, 0)
            )
        every = build.add("all_gather", rows, dim=0, groups=all_ranks(2))
        parts = [
            build.add("slice", every, starts=(3 * k, 0), limits=(3 * k + 3 - k, WIDE), steps=(1, 1))
            for k in order
        ]
        build.output("y", build.add("concat", *parts, axis=0))

    return rank_of


def test_uneven_rows_gathered():
    verdict = verdict_of(whole_rows, 2, padded_gather((0, 1)))
    assert isinstance(verdict, Proved)
    assert layouts_of(verdict) == ["replicated", "replicated"]
    assert isinstance(verdict_of(whole_rows, 2, padded_gather((1, 0))), Refuted)


# A vocabulary in uneven parts.


def whole_lookup(build: GraphBuilder) -> None:
    table = build.input("table", "f32", (10, WIDE), role="parameter")
    build.output("e", build.add("take", table, build.input("ids", "i64", (5,)), axis=0))


def own_lookup(parts: Sequence[int], starts: Sequence[int]) -> Ranks:
    def rank_of(rank: int, build: GraphBuilder) -> None:
        table = build.input("table", "f32", (parts[rank], WIDE), role="parameter")
        ids = build.input("ids", "i64", (5,))
        first, last = (build.constant(starts[rank] + n, "i64") for n in (0, parts[rank]))
        own = build.add("and", build.add("ge", ids, first), build.add("lt", ids, last))
        local = build.add("where", own, build.add("sub", ids, first), build.constant(0, "i64"))
        rows = build.add("take", table, local, axis=0)
        shown = build.add("broadcast", own, dims=(0,), shape=(5, WIDE))
        found = build.add("where", shown, rows, build.constant(0.0, "f32"))
        build.output("e", summed(build, found, len(parts)))

    return rank_of


def test_a_vocabulary_in_uneven_parts():
    parts = (3, 3, 2, 2)
    assert isinstance(verdict_of(whole_lookup, 4, own_lookup(parts, (0, 3, 6, 8))), Proved)
    assert isinstance(verdict_of(whole_lookup, 4, own_lookup(parts, (0, 3, 5, 8))), Refuted)
    assert isinstance(verdict_of(whole_lookup, 4, own_lookup(parts, (0, 2, 4, 6))), Refuted)


@pytest.mark.parametrize("parts", [(3, 3, 3, 1), (1, 9), (4, 1, 5)])
def test_a_vocabulary_of_which_one_rank_holds_one_word(parts: Sequence[int]):
    starts = [sum(parts[:rank]) for rank in range(len(parts))]
    assert isinstance(verdict_of(whole_lookup, len(parts), own_lookup(parts, starts)), Proved)
    wrong = [max(0, start - 1) for start in starts]
    assert isinstance(verdict_of(whole_lookup, len(parts), own_lookup(parts, wrong)), Refuted)


# Attention heads in uneven parts.


def attention(build: GraphBuilder, heads: int, size: int = 2, tokens: int = 3) -> NodeId:
    x = build.input("x", "f32", (tokens, WIDE))

    def projected(name: str) -> NodeId:
        weight = build.input(name, "f32", (heads * size, WIDE), role="parameter")
        flat = build.add("einsum", x, weight, spec="ti,oi->to")
        return build.add("transpose", build.add("reshape", flat, shape=(tokens, heads, size)), perm=(1, 0, 2))

    mixed = build.add("attention", projected("q"), projected("k"), projected("v"), scale=0.5, causal=True)
    flat = build.add("reshape", build.add("transpose", mixed, perm=(1, 0, 2)), shape=(tokens, heads * size))
    weight = build.input("o", "f32", (WIDE, heads * size), role="parameter")
    return build.add("einsum", flat, weight, spec="ti,oi->to")


def on_two_ranks(heads: tuple[int, int]) -> Verdict:
    return verdict_of(
        lambda build: build.output("y", attention(build, sum(heads))),
        2,
        lambda rank, build: build.output("y", summed(build, attention(build, heads[rank]), 2)),
    )


@pytest.mark.parametrize("heads", [(3, 2), (2, 4), (2, 1)])
def test_heads_in_uneven_parts(heads: tuple[int, int]):
    """Of one head alone, what its scores are divided by stands outside of the sum."""
    assert isinstance(on_two_ranks(heads), Proved)


@pytest.mark.xfail(strict=True, reason="what follows a head alone is not seen to be the next of many")
@pytest.mark.parametrize("heads", [(1, 3), (1, 1)])
def test_a_head_alone_comes_first(heads: tuple[int, int]):
    assert isinstance(on_two_ranks(heads), Proved)


# Fused weights.


def gated(build: GraphBuilder, hidden: int, *, swapped: bool = False) -> NodeId:
    x = build.input("x", "f32", (ROWS, WIDE))
    both = build.add(
        "einsum", x, build.input("both", "f32", (2 * hidden, WIDE), role="parameter"), spec="bi,oi->bo"
    )
    gate, up = (
        build.add("slice", both, starts=(0, start), limits=(ROWS, start + hidden), steps=(1, 1))
        for start in ((hidden, 0) if swapped else (0, hidden))
    )
    down = build.input("down", "f32", (WIDE, hidden), role="parameter")
    return build.add("einsum", build.add("mul", build.add("silu", gate), up), down, spec="bi,oi->bo")


@pytest.mark.parametrize("swapped", [False, True])
def test_a_fused_weight_in_uneven_parts(swapped: bool):
    def whole(build: GraphBuilder) -> None:
        build.output("y", gated(build, HIDDEN))

    def rank_of(rank: int, build: GraphBuilder) -> None:
        build.output("y", summed(build, gated(build, PARTS[rank], swapped=swapped and rank == 3), 4))

    assert isinstance(verdict_of(whole, 4, rank_of), Refuted if swapped else Proved)


# Stages.


def test_stages_are_proved_together():
    def whole(build: GraphBuilder) -> None:
        build.output("y", build.add("sin", build.add("exp", build.input("x", "f32", (4,)))))

    def stage(pairs: tuple[tuple[int, int], ...]) -> Ranks:
        def rank_of(rank: int, build: GraphBuilder) -> None:
            x = (
                build.add("exp", build.input("x", "f32", (4,)))
                if rank == 0
                else build.constant(0.0, "f32", (4,))
            )
            sent = build.add("permute", x, pairs=pairs)
            if rank:
                build.output("y", build.add("sin", sent))

        return rank_of

    assert isinstance(verdict_of(whole, 2, stage(((0, 1),))), Proved)
    assert isinstance(verdict_of(whole, 2, stage(())), Refuted)


# Captured from PyTorch.

SOURCE = """
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn


class Mlp(nn.Module):
    def __init__(self, width, group=None, reduced=True):
        super().__init__()
        self.up, self.down = nn.Linear(8, width), nn.Linear(width, 8, bias=False)
        self.group, self.reduced = group, reduced

    def forward(self, x):
        y = self.down(nn.functional.gelu(self.up(x)))
        return functional.all_reduce(y, "sum", self.group) if self.group and self.reduced else y


def whole():
    with torch.device("meta"):
        return Mlp(10), (torch.zeros(2, 8),)


def width(rank, group):
    return len(torch.arange(10).tensor_split(dist.get_world_size(group))[rank])


def uneven(rank, groups):
    with torch.device("meta"):
        return Mlp(width(rank, groups["tp"]), groups["tp"]), (torch.zeros(2, 8),)


def unreduced(rank, groups):
    with torch.device("meta"):
        return Mlp(width(rank, groups["tp"]), groups["tp"], reduced=False), (torch.zeros(2, 8),)


class Rows(nn.Module):
    def __init__(self, sizes=None, group=None):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.sizes, self.group = sizes, group

    def forward(self, x):
        y = torch.tanh(self.linear(x))
        if self.group is None:
            return y
        y = nn.functional.pad(y, (0, 0, 0, max(self.sizes) - y.shape[0]))
        every = functional.all_gather_tensor(y, 0, self.group).chunk(len(self.sizes))
        return torch.cat([rows[:size] for rows, size in zip(every, self.sizes)])


def batch():
    return Rows(), (torch.zeros(10, 8),)


def rows(rank, groups):
    sizes = (3, 3, 3, 1)
    return Rows(sizes, groups["tp"]), (torch.zeros(sizes[rank], 8),)


def crossing(rank, groups):
    def both(x, y):
        first = functional.all_reduce(x, "sum", groups["tp"])
        second = functional.all_reduce(y, "sum", groups["tp"])
        return second if rank == 0 else first

    return both, (torch.zeros(2), torch.zeros(2))
"""
FOUR = Mesh(axes=(("tp", 4),))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("uneven") / "uneven_models.py"
    path.write_text(SOURCE)
    return path


def test_a_captured_module_of_uneven_width(source: Path, tmp_path: Path):
    """As one text, and as a file for each rank: the same program."""
    (whole,) = capture(f"{source}:whole", tmp_path / "whole.pt")
    (text,) = capture(f"{source}:uneven", tmp_path / "uneven.scg", mesh=FOUR)
    files = capture(f"{source}:uneven", tmp_path / "uneven.pt", mesh=FOUR, per_rank=True)

    graph = load_side(files)
    assert graph.unrolled == 4
    assert load_side([text]) == graph
    for candidate in (text, files):
        verdict = scalify.verify(whole, candidate)
        assert isinstance(verdict, Proved)
        assert "up.weight@rank2: dimension 0 in parts 3, 3, 2, 2 over ranks 0-3" in verdict.assumptions

    (wrong,) = capture(f"{source}:unreduced", tmp_path / "unreduced.scg", mesh=FOUR)
    verdict = scalify.verify(whole, wrong)
    assert isinstance(verdict, Refuted)
    assert verdict.suspect is not None
    assert verdict.suspect.candidate.site is not None
    line = verdict.suspect.candidate.site.line
    assert "self.down(" in SOURCE.splitlines()[line - 1]


def test_captured_rows_that_are_padded_gathered_and_cut(source: Path):
    batch = captured(load_build(f"{source}:batch"), name="batch")
    rows = captured(load_build(f"{source}:rows"), name="rows", mesh=FOUR)
    assert isinstance(scalify.verify(batch, rows), Proved)


def test_collectives_meet_in_the_order_of_the_program(source: Path):
    """Also where a rank has no use for the result of one of them."""
    graph = captured(load_build(f"{source}:crossing"), name="both", mesh=Mesh(axes=(("tp", 2),)))
    assert _values(graph) == {"output_0@rank0": 2 + 20, "output_0@rank1": 1 + 10}


def _values(graph: Graph) -> dict[str, float]:
    values = {"args_0@rank0": 1, "args_0@rank1": 10, "args_1@rank0": 2, "args_1@rank1": 20}
    found = evaluate(graph, {name: [np.full(2, float(value))] for name, value in values.items()})
    return {name: float(value[0][0]) for name, value in found.items()}
