"""Planted bugs are found by running both programs; what cannot be run or told leaves the proof's suspect."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice

import pytest
from scalify_cases import Layout, Pair, Program, case_names, load_pair, replicated, sharded, suspect_lines
from scalify_mutants import mutants

from scalify.ir.graph import Graph, NodeId
from scalify.localize.by_values import locate
from scalify.refute.budget import Search
from scalify.refute.pair import pair_of
from scalify.refute.search import search
from scalify.verdict import Draw, Place, Suspect

TP = {"tp": 4}
MLP: Mapping[str, Layout] = {"x": replicated, "up": sharded(1), "down": sharded(0)}
ELSEWHERE = Suspect(candidate=Place(node=NodeId("none"), op="add", site=None, scope=""), baseline=None)


def blamed(pair: Pair, suspect: Suspect | None = None) -> Suspect | None:
    """What values say of a pair, on the first inputs on which it differs."""
    relations = pair.relations()
    sides = pair_of(pair.baseline, pair.candidate, relations)
    found = search(sides, relations.outputs, Search(duration_s=5.0, draws=8)).found
    assert found is not None
    return locate(pair.baseline, pair.candidate, relations, sides.given(found.draw), suspect)


def made(
    baseline: Callable[[Program], None],
    candidate: Callable[[Program], None],
    inputs: Mapping[str, Layout],
    outputs: Mapping[str, Layout],
    mesh: Mapping[str, int] = TP,
) -> Pair:
    graphs = graph_of(baseline, {}), graph_of(candidate, mesh)
    return Pair(verdict="unknown", baseline=graphs[0], candidate=graphs[1], inputs=inputs, outputs=outputs)


def graph_of(write: Callable[[Program], None], mesh: Mapping[str, int]) -> Graph:
    program = Program(**mesh)
    write(program)
    return program.graph()


def inputs_of(p: Program, ranks: int) -> tuple[NodeId, NodeId, NodeId]:
    x = p.input("x", "f32", (8, 6))
    return x, p.input("up", "f32", (6, 16 // ranks)), p.input("down", "f32", (16 // ranks, 6))


def mlp(p: Program) -> None:
    x, up, down = inputs_of(p, 1)
    part = p.product("to,oi->ti", p.add("relu", p.product("ti,io->to", x, up)), down)
    p.output("y", p.add("tanh", p.add("add", part, x)))


def of_mlp(write: Callable[[Program, NodeId, NodeId], NodeId]) -> Pair:
    """The perceptron on ranks, with what becomes of the partial result ``write``n otherwise."""

    def candidate(p: Program) -> None:
        x, up, down = inputs_of(p, 4)
        hidden = p.add("relu", p.product("ti,io->to", x, up))
        p.output(
            "y",
            p.add("tanh", write(p, p.add("einsum", hidden, down, spec="to,oi->ti", id="part"), x), id="last"),
        )

    return made(mlp, candidate, MLP, {"y": replicated})


def no_sum(p: Program, part: NodeId, x: NodeId) -> NodeId:
    return p.add("add", p.add("cast", part, dtype="f32"), x)


def mean_over_ranks(p: Program, part: NodeId, x: NodeId) -> NodeId:
    total = p.add("all_reduce", part, kind="avg", groups=p.groups(), id="wrong")
    return p.add("add", total, x)


def half_of_the_ranks(p: Program, part: NodeId, x: NodeId) -> NodeId:
    total = p.add("all_reduce", part, kind="sum", groups=((0, 1), (2, 3)), id="wrong")
    return p.add("add", total, x)


def summed_twice(p: Program, part: NodeId, x: NodeId) -> NodeId:
    total = p.add("all_reduce", p.over_ranks(part), kind="sum", groups=p.groups(), id="wrong")
    return p.add("add", total, x)


def residual_on_every_rank(p: Program, part: NodeId, x: NodeId) -> NodeId:
    return p.over_ranks(p.add("add", part, x, id="wrong"))


def scaled(p: Program, part: NodeId, x: NodeId) -> NodeId:
    return p.add("add", p.over_ranks(p.add("mul", part, 0.5, id="wrong")), x)


def no_residual(p: Program, part: NodeId, x: NodeId) -> NodeId:
    del x
    return p.over_ranks(part)


@pytest.mark.parametrize(
    ("write", "node"),
    [
        (no_sum, "part"),
        (mean_over_ranks, "wrong"),
        (half_of_the_ranks, "wrong"),
        (summed_twice, "wrong"),
        (residual_on_every_rank, "wrong"),
        (scaled, "wrong"),
        (no_residual, "last"),
    ],
)
def test_the_planted_node_is_blamed_and_mends_the_output(
    write: Callable[[Program, NodeId, NodeId], NodeId], node: str
) -> None:
    suspect = blamed(of_mlp(write))
    assert suspect is not None
    assert (suspect.candidate.node, suspect.mended) == (node, True)


def test_a_missing_sum_is_named_although_a_cast_follows_it() -> None:
    suspect = blamed(of_mlp(no_sum))
    assert suspect is not None
    assert suspect.guess.startswith("missing all-reduce after part")


def gated(p: Program) -> None:
    w = p.input("w", "f32", (6, 16))
    gate, up = p.cut(w, 1, 0, 8), p.cut(w, 1, 8, 8)
    p.output("y", p.add("mul", p.add("silu", gate), up))


def gate_moved(p: Program) -> None:
    w = p.input("w", "f32", (6, 16))
    gate = p.add("slice", w, starts=(0, 1), limits=(6, 9), steps=(1, 1), id="wrong")
    p.output("y", p.add("mul", p.add("silu", gate), p.cut(w, 1, 8, 8)))


def test_a_window_from_another_place_is_blamed_itself() -> None:
    suspect = blamed(made(gated, gate_moved, {"w": replicated}, {"y": replicated}))
    assert suspect is not None
    assert (suspect.candidate.node, suspect.mended) == ("wrong", True)


def three_readers(p: Program) -> None:
    x = p.add("mul", p.input("x", "f32", (4, 4)), p.input("gain", "f32", (4,)))
    p.output("y", p.add("add", p.add("mul", p.add("sin", x), p.add("cos", x)), p.add("exp", x)))


def three_readers_of_another(p: Program) -> None:
    x = p.input("x", "f32", (4, 4))
    p.input("gain", "f32", (4,))
    sine = p.add("sin", x, id="first")
    p.output("y", p.add("add", p.add("mul", sine, p.add("cos", x)), p.add("exp", x)))


def test_what_is_missing_before_several_readers_is_found_with_all_of_them_mended() -> None:
    pair = made(
        three_readers, three_readers_of_another, {"x": replicated, "gain": replicated}, {"y": replicated}
    )
    suspect = blamed(pair)
    assert suspect is not None
    assert (suspect.candidate.node, suspect.mended) == ("first", True)


def test_programs_too_large_to_keep_leave_the_suspect_of_the_proof() -> None:
    pair = of_mlp(scaled)
    relations = pair.relations()
    assert locate(pair.baseline, pair.candidate, relations, ({}, {}), ELSEWHERE, most_bytes=100) is ELSEWHERE


def test_of_a_pair_that_is_right_nothing_is_said() -> None:
    pair = made(mlp, mlp, dict.fromkeys(MLP, replicated), {"y": replicated}, {})
    relations = pair.relations()
    sides = pair_of(pair.baseline, pair.candidate, relations)
    given = sides.given(Draw(family="odd sixteenths", seed=0))
    assert locate(pair.baseline, pair.candidate, relations, given, None) is None


def test_three_in_four_of_the_corpus_are_blamed_on_their_line_by_values_alone() -> None:
    missed: list[str] = []
    names = [name for name in case_names() if name.startswith("unknown/") and suspect_lines(name)]
    for name in names:
        pair = load_pair(name)
        relations = pair.relations()
        sides = pair_of(pair.baseline, pair.candidate, relations)
        found = search(sides, relations.outputs, Search(duration_s=5.0, draws=4)).found
        if relations.undecided or found is None:
            continue
        suspect = locate(pair.baseline, pair.candidate, relations, sides.given(found.draw), None)
        site = suspect.candidate.site if suspect else None
        if site is None or site.line not in suspect_lines(name):
            missed.append(name)
    assert len(missed) <= len(names) // 4, missed


def rows_of_a_rank(p: Program, first: int) -> None:
    """A table of which each rank holds some rows; what others hold is 0 here, and summed over all."""
    ids, table = p.input("ids", "i64", (5,)), p.input("table", "f32", (4, 3))
    own = p.add("sub", ids, p.add("mul", p.place_on("tp"), 4))
    outside = p.add("or", p.add("lt", own, first, id="below"), p.add("ge", own, 4))
    rows = p.add("take", table, p.add("where", outside, 0, own), axis=0)
    found = p.add("where", p.shaped(outside, 5, 1), 0.0, rows)
    p.output("y", p.add("tanh", p.over_ranks(found)))


def table(p: Program) -> None:
    ids, rows = p.input("ids", "i64", (5,)), p.input("table", "f32", (16, 3))
    p.output("y", p.add("tanh", p.add("take", rows, ids, axis=0)))


def test_where_the_baseline_has_nothing_like_it_a_small_change_tells_the_place() -> None:
    inputs: Mapping[str, Layout] = {"ids": replicated, "table": sharded(0)}
    suspect = blamed(made(table, lambda p: rows_of_a_rank(p, 1), inputs, {"y": replicated}))
    assert suspect is not None
    assert (suspect.candidate.node, suspect.mended) == ("below", True)
    assert suspect.guess == "the outputs are right with 0 in the place of 1"


def two_layers(p: Program, ranks: int, *, summed: bool) -> None:
    x = p.input("x", "f32", (8, 6))
    for layer in range(2):
        w = p.input(f"w{layer}", "f32", (6 // ranks, 6))
        own = x if ranks == 1 else p.own_piece(x, 1)
        part = p.product("ti,io->to", own, w)
        x = p.add("tanh", p.over_ranks(part) if summed else part)
    p.output("y", x)


def test_what_is_wrong_in_every_layer_is_mended_in_all_of_them() -> None:
    pair = made(
        lambda p: two_layers(p, 1, summed=False),
        lambda p: two_layers(p, 2, summed=False),
        {"x": replicated, "w0": sharded(0), "w1": sharded(0)},
        {"y": replicated},
        {"tp": 2},
    )
    suspect = blamed(pair)
    assert suspect is not None
    first = next(node for node in pair.candidate.nodes if node.op == "einsum")
    assert (suspect.candidate.node, suspect.mended) == (first.id, True)
    assert suspect.guess.startswith(f"missing all-reduce after {first.id}")


def norm_of_addends(p: Program, part: NodeId, x: NodeId) -> NodeId:
    length = p.add("sqrt", p.add("reduce", p.add("mul", part, part, id="wrong"), kind="sum", axes=(1,)))
    return scaled_by(p, p.over_ranks(part), p.over_ranks(length), x)


def scaled_by(p: Program, y: NodeId, length: NodeId, x: NodeId) -> NodeId:
    whole = p.add("broadcast", length, shape=(8, 6), dims=(0,))
    return p.add("add", p.add("div", y, whole), x)


def of_length_one(p: Program) -> None:
    x, up, down = inputs_of(p, 1)
    part = p.product("to,oi->ti", p.add("relu", p.product("ti,io->to", x, up)), down)
    length = p.add("sqrt", p.add("reduce", p.add("mul", part, part), kind="sum", axes=(1,)))
    p.output("y", p.add("tanh", scaled_by(p, part, length, x)))


def test_a_sum_that_is_taken_elsewhere_is_not_missing_where_its_addends_are_made() -> None:
    pair = of_mlp(norm_of_addends)
    suspect = blamed(replace(pair, baseline=graph_of(of_length_one, {})))
    assert suspect is not None
    assert suspect.candidate.node != "part"


def reduced_for_nothing(p: Program, part: NodeId, x: NodeId) -> NodeId:
    p.add("all_reduce", part, kind="sum", groups=p.groups(), id="wrong")
    return p.add("add", part, x)


def test_a_combination_that_nothing_reads_is_named() -> None:
    suspect = blamed(of_mlp(reduced_for_nothing))
    assert suspect is not None
    assert (suspect.candidate.node, "is not used" in suspect.guess) == ("wrong", True)


def test_what_is_added_to_addends_is_said_to_be_counted_once_per_rank() -> None:
    suspect = blamed(of_mlp(residual_on_every_rank))
    assert suspect is not None
    assert suspect.guess.startswith("counted once per rank (4 times): x is added")


def rotated(p: Program) -> None:
    x, places = p.input("x", "f32", (8, 6)), p.input("places", "i64", (2, 8))
    table = p.input("table", "f32", (16, 6))
    row = p.add("reshape", p.cut(places, 0, 0, 1), shape=(8,))
    first, second = p.add("take", table, row, axis=0), p.add("take", table, row, axis=0)
    p.output("y", p.add("add", p.add("mul", x, p.add("sin", first)), p.add("cos", second)))


def rotated_by_the_other_row(p: Program) -> None:
    x, places = p.input("x", "f32", (8, 6)), p.input("places", "i64", (2, 8))
    table = p.input("table", "f32", (16, 6))
    row = p.add("reshape", p.add("slice", places, starts=(1, 0), limits=(2, 8), steps=(1, 1)), shape=(8,))
    first, second = p.add("take", table, row, axis=0), p.add("take", table, row, axis=0)
    p.output("y", p.add("add", p.add("mul", x, p.add("sin", first)), p.add("cos", second)))


def test_what_two_wrong_values_come_from_is_named_although_neither_alone_mends() -> None:
    inputs: Mapping[str, Layout] = {"x": replicated, "places": replicated, "table": replicated}
    suspect = blamed(made(rotated, rotated_by_the_other_row, inputs, {"y": replicated}))
    assert suspect is not None
    assert (suspect.candidate.op in ("slice", "reshape"), suspect.mended) == (True, True)


def test_whatever_is_changed_a_node_of_the_candidate_is_named() -> None:
    pair = of_mlp(lambda p, part, x: p.add("add", p.over_ranks(part), x))
    tried = 0
    for mutant in islice(mutants(pair.candidate), 60):
        changed = replace(pair, candidate=mutant.graph)
        relations = changed.relations()
        sides = pair_of(changed.baseline, changed.candidate, relations)
        found = search(sides, relations.outputs, Search(duration_s=5.0, draws=4)).found
        if found is None:
            continue
        tried += 1
        suspect = locate(changed.baseline, changed.candidate, relations, sides.given(found.draw))
        assert suspect is not None
        assert suspect.candidate.node in changed.candidate.by_id()
    assert tried > 10
