"""Ranks side by side: what all of them compute alike is computed once, and nothing else is."""

from collections import Counter

from uneven import HIDDEN, PARTS, WIDE, all_ranks, on_one, side_by_side, uneven_mlp, whole_mlp

import scalify
from scalify.ir.build import GraphBuilder
from scalify.ir.check import check
from scalify.ir.graph import Graph, NodeId
from scalify.prove.shared import shared
from scalify.relate.relate import relate
from scalify.verdict import Proved


def shared_by(baseline: Graph, candidate: Graph) -> Graph:
    graph = shared(candidate, relate(baseline, candidate))
    check(graph)
    return graph


def test_what_is_replicated_is_computed_once():
    def rank_of(rank: int, build: GraphBuilder) -> None:
        x = build.input("x", "f32", (4,))
        w = build.input("w", "f32", (2 + rank,), role="parameter")
        build.output("y", build.add("exp", build.add("sin", x)))
        build.output("z", build.add("exp", w))

    def whole(build: GraphBuilder) -> None:
        build.output("y", build.add("exp", build.add("sin", build.input("x", "f32", (4,)))))
        build.output("z", build.add("exp", build.input("w", "f32", (9,), role="parameter")))

    graph = shared_by(on_one(whole), side_by_side(3, rank_of))
    assert Counter(node.op for node in graph.nodes) == {"input": 6, "sin": 1, "exp": 1 + 3}
    assert {
        output.name: output.value for output in graph.outputs if output.name.startswith("y")
    } == dict.fromkeys(("y@rank0", "y@rank1", "y@rank2"), "rank0.exp_3")


def test_windows_and_undecided_inputs_are_not_the_same():
    graph = shared_by(whole_mlp(), side_by_side(4, uneven_mlp))
    assert Counter(node.op for node in graph.nodes)["einsum"] == 2 * len(PARTS)

    undecided = side_by_side(4, lambda rank, build: uneven_mlp(rank, build, (5,) * 4))
    assert len(shared_by(whole_mlp(), undecided).nodes) == len(undecided.nodes)


def test_what_ranks_draw_stays_apart():
    def rank_of(rank: int, build: GraphBuilder) -> None:
        x = build.input("x", "f32", (4,))
        noise = build.add("random", dtype="f32", shape=(4,), key="noise", kind="normal")
        build.output("y", build.add("add", x, noise))

    graph = side_by_side(2, rank_of)
    baseline = on_one(lambda build: build.output("y", build.input("x", "f32", (4,))))
    assert Counter(node.op for node in shared_by(baseline, graph).nodes) == {
        "input": 2,
        "random": 2,
        "add": 2,
    }


def stack(build: GraphBuilder, hidden: int, layers: int, ranks: int) -> None:
    """Residual layers of perceptrons."""
    x: NodeId = build.input("x", "f32", (2, WIDE))
    for layer in range(layers):
        scale = build.input(f"{layer}.scale", "f32", (WIDE,), role="parameter")
        normed = build.add("rms_norm", x, scale, axes=(1,), eps=1e-6)
        up, down = (
            build.input(f"{layer}.{name}", "f32", shape, role="parameter")
            for name, shape in (("up", (WIDE, hidden)), ("down", (hidden, WIDE)))
        )
        wide = build.add("einsum", normed, up, spec="bi,io->bo")
        for op in ("tanh", "exp", "sin", "sigmoid", "square", "cos", "relu", "abs", "silu"):
            wide = build.add("mul", build.add(op, wide), wide)
        y = build.add("einsum", wide, down, spec="bi,io->bo")
        if ranks > 1:
            y = build.add("all_reduce", y, kind="sum", groups=all_ranks(ranks))
        x = build.add("add", x, y)
    build.output("y", x)


def test_layers_on_uneven_ranks_are_proved_one_by_one():
    """Two regions of a stack are equal, so the time does not grow with its height."""
    layers = 12
    verdict = scalify.verify(
        on_one(lambda build: stack(build, HIDDEN, layers, 1)),
        side_by_side(4, lambda rank, build: stack(build, PARTS[rank], layers, 4)),
    )
    assert isinstance(verdict, Proved)
    assert verdict.work.regions > 2
    assert verdict.work.distinct_regions < verdict.work.regions
