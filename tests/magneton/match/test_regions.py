"""Regions of small programs that are written in two ways."""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

from collections.abc import Callable

import numpy as np
import pytest
from graphs import Graph, Ref
from soundness import unsound

from magneton.match import match
from magneton.match.model import Matching
from magneton.profile.model import Profile

T, D = 16, 32


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms_norm(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-6) * w


def decoder(*, layers: int = 3, fused_qkv: bool = False, fused_attention: bool = False) -> Profile:
    draws, graph = np.random.default_rng(1), Graph()
    x = graph.input("x", draws.standard_normal((T, D)))
    mask = None if fused_attention else _mask(graph)
    for layer in range(layers):
        graph.module = f"layers.{layer}"
        w_q, w_k, w_v, w_o = (draws.standard_normal((D, D)) / np.sqrt(D) for _ in range(4))
        h = graph.op("norm", rms_norm, x, graph.parameter("norm", draws.random(D) + 0.5))
        if fused_qkv:
            w = graph.parameter("qkv", np.concatenate([w_q, w_k, w_v], 1))
            fused = graph.op("mm", np.matmul, h, w)
            q, k, v = graph.ops("chunk", lambda a: np.split(a, 3, -1), fused, effect="view")
        else:
            q, k, v = (graph.op("mm", np.matmul, h, graph.parameter("w", w)) for w in (w_q, w_k, w_v))
        context = _attention(graph, q, k, v, mask)
        x = graph.op("add", np.add, x, graph.op("out", np.matmul, context, graph.parameter("o", w_o)))
    return graph.profile()


def _mask(graph: Graph) -> Ref:
    ones = graph.op("ones", lambda: np.ones((T, T)))
    return graph.op(
        "fill", lambda a: np.where(a > 0, -np.inf, 0.0), graph.op("triu", lambda a: np.triu(a, 1), ones)
    )


def _attention(graph: Graph, q: Ref, k: Ref, v: Ref, mask: Ref | None) -> Ref:
    if mask is None:
        hidden = np.triu(np.full((T, T), -np.inf), 1)
        return graph.op("sdpa", lambda q, k, v: softmax(q @ k.T / np.sqrt(D) + hidden) @ v, q, k, v)
    scores = graph.op("div", lambda s: s / np.sqrt(D), graph.op("qk", lambda q, k: q @ k.T, q, k))
    return graph.op("pv", np.matmul, graph.op("softmax", softmax, graph.op("mask", np.add, scores, mask)), v)


def names(profile: Profile, ops: tuple[int, ...]) -> list[str]:
    return [profile.operators[op].name for op in ops]


def region_with(matching: Matching, baseline: Profile, name: str) -> tuple[list[str], int]:
    """The operators of the baseline in the first region with ``name``, and the region's index."""
    for index, region in enumerate(matching.regions):
        if name in names(baseline, region.baseline):
            return names(baseline, region.baseline), index
    raise AssertionError(f"no region holds {name}")


def test_fused_qkv_is_one_region_with_its_three_parts():
    baseline, candidate = decoder(fused_qkv=True), decoder()
    matching = match(baseline, candidate)
    ops, index = region_with(matching, baseline, "chunk")
    assert ops == ["mm", "chunk"]
    assert names(candidate, matching.regions[index].candidate) == ["mm", "mm", "mm"]
    assert sum(pair.evidence == "composite" for pair in matching.pairs) == 2 * 3  # values and weights
    assert unsound(baseline, candidate, matching) == []
    assert not matching.only_baseline
    assert not matching.only_candidate


def test_a_mask_does_not_glue_layers():
    baseline, candidate = decoder(), decoder(fused_attention=True)
    matching = match(baseline, candidate)
    attention = [r for r in matching.regions if "softmax" in names(baseline, r.baseline)]
    assert [names(baseline, r.baseline) for r in attention] == [["qk", "div", "mask", "softmax", "pv"]] * 3
    assert [names(candidate, r.candidate) for r in attention] == [["sdpa"]] * 3
    assert {left.reason for left in matching.only_baseline} == {"setup"}
    assert len(matching.only_baseline) == 3
    assert [len(g.regions) for g in matching.groups] == [3, 9, 3, 3, 3]  # queries, keys and values are alike
    assert unsound(baseline, candidate, matching) == []


def test_masks_of_both_sides_are_a_shared_region():
    matching = match(decoder(), decoder(fused_qkv=True))
    (shared,) = (region for region in matching.regions if region.shared)
    assert len(shared.baseline) == len(shared.candidate) == 3


def test_rotary_tables_computed_on_the_fly_are_set_up():
    angles = np.outer(np.arange(T), 10.0 ** -np.linspace(0, 2, D))

    def turned(on_the_fly: bool) -> Profile:
        draws, graph = np.random.default_rng(2), Graph()
        x = graph.input("x", draws.standard_normal((T, D)))
        source = graph.buffer("angles", angles) if on_the_fly else graph.buffer("cos", np.cos(angles))
        table = graph.op("cos", np.cos, source) if on_the_fly else source
        for _ in range(3):
            w = graph.parameter("w", draws.standard_normal((D, D)) / 6)
            x = graph.op("mul", np.multiply, graph.op("mm", np.matmul, x, w), table)
        return graph.profile()

    baseline, candidate = turned(True), turned(False)
    matching = match(baseline, candidate)
    assert [(left.op_id, left.reason) for left in matching.only_baseline] == [(0, "setup")]
    assert all(len(region.baseline) == 1 for region in matching.regions)
    assert len(matching.regions) == 6


def test_a_cache_written_in_place_against_a_concatenation():
    draws = np.random.default_rng(3)
    past, new, room = draws.standard_normal((8, D)), draws.standard_normal((4, D)), np.zeros((16, D))
    room[:8] = past

    def cached(in_place: bool) -> Profile:
        graph = Graph()
        key = graph.op("tanh", np.tanh, graph.input("new", new))
        if in_place:
            cache = graph.buffer("cache", room)
            written = graph.write("copy_", _into_rows_8_to_12, cache, key)
            keys = graph.view("narrow", lambda a: a[:12], written)
        else:
            keys = graph.op("cat", lambda a, b: np.concatenate([a, b]), graph.buffer("past", past), key)
        graph.op("softmax", softmax, keys)
        return graph.profile()

    baseline, candidate = cached(False), cached(True)
    matching = match(baseline, candidate)
    ops, index = region_with(matching, baseline, "cat")
    assert ops == ["cat"]
    assert names(candidate, matching.regions[index].candidate) == ["copy_", "narrow"]
    assert unsound(baseline, candidate, matching) == []


def _into_rows_8_to_12(cache: np.ndarray, rows: np.ndarray) -> np.ndarray:
    cache[8:12] = rows
    return cache


def test_identical_branches_fall_to_the_one_branch():
    def branches(twice: bool) -> Profile:
        graph = Graph()
        x = graph.input("x", np.random.default_rng(4).standard_normal((T, D)))
        one = graph.op("tanh", np.tanh, x)
        other = graph.op("tanh", np.tanh, x) if twice else one
        graph.op("mul", lambda a, b: a * (b + 1), one, other)
        return graph.profile()

    matching = match(branches(True), branches(False))
    assert [(r.baseline, r.candidate) for r in matching.regions] == [((0, 1), (0,)), ((2,), (1,))]


def test_views_follow_their_consumer():
    def viewed(view: bool) -> Profile:
        graph = Graph()
        h = graph.op("tanh", np.tanh, graph.input("x", np.random.default_rng(5).standard_normal((T, D))))
        graph.op("sum", lambda a: a.reshape(T, D).cumsum(0), graph.view("flat", np.ravel, h) if view else h)
        return graph.profile()

    matching = match(viewed(True), viewed(False))
    assert [(r.baseline, r.candidate) for r in matching.regions] == [((0,), (0,)), ((1, 2), (1,))]


def test_logits_of_the_last_position_against_those_of_all():
    draws = np.random.default_rng(6)
    x0, w0 = draws.standard_normal((T, D)), draws.standard_normal((D, 50))

    def head(all_positions: bool) -> Profile:
        graph = Graph()
        h = graph.op("tanh", np.tanh, graph.input("x", x0))
        rows = h if all_positions else graph.view("last", lambda a: a[-1:], h)
        graph.op("mm", np.matmul, rows, graph.parameter("head", w0))
        return graph.profile()

    baseline, candidate = head(True), head(False)
    matching = match(baseline, candidate)
    assert [(r.baseline, r.candidate) for r in matching.regions] == [((0,), (0,)), ((1,), (1, 2))]
    assert matching.pairs[matching.regions[1].produces[0]].evidence == "output"


def _with(extra: Callable[[Graph, Ref], object] | None) -> Profile:
    graph = Graph()
    h = graph.op("tanh", np.tanh, graph.input("x", np.random.default_rng(7).standard_normal((T, D))))
    if extra is not None:
        extra(graph, h)
    graph.op("exp", np.exp, h)
    return graph.profile()


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (lambda graph, h: graph.sync("item", h), "sync"),
        (lambda graph, h: graph.op("sin", np.sin, h), "dead"),
        (
            lambda graph, h: graph.write("fill_", lambda a: a * 0 + 1, graph.buffer("b", np.eye(9))),
            "side-effect",
        ),
        (lambda graph, h: graph.ops("empty", lambda: (np.zeros(3),), effect="alloc"), "alloc"),
    ],
    ids=["sync", "dead", "side-effect", "alloc"],
)
def test_what_only_one_side_does_is_left_over_with_a_reason(
    extra: Callable[[Graph, Ref], object], reason: str
):
    matching = match(_with(extra), _with(None))
    assert [left.reason for left in matching.only_baseline] == [reason]
    assert not matching.only_candidate
    assert len(matching.regions) == 2


def test_different_models_share_no_region():
    def model(seed: int) -> Profile:
        draws, graph = np.random.default_rng(seed), Graph()
        x = graph.input("x", draws.standard_normal((T, D)))
        for _ in range(12):
            x = graph.op("mm", np.matmul, x, graph.parameter("w", draws.standard_normal((D, D)) / 6))
        return graph.profile()

    matching = match(model(1), model(2))
    assert matching.regions == ()
    assert len(matching.only_baseline) == len(matching.only_candidate) == 12
    assert {left.reason for left in matching.only_baseline} == {"no-counterpart-value"}


def test_one_operator_and_none():
    one = _with(None)
    nothing = Graph().profile()
    assert match(nothing, nothing).regions == ()
    assert len(match(one, nothing).only_baseline) == 2
    graph = Graph()
    graph.op("tanh", np.tanh, graph.input("x", np.random.default_rng(7).standard_normal((T, D))))
    alone = match(graph.profile(), graph.profile())
    assert [(r.baseline, r.candidate) for r in alone.regions] == [((0,), (0,))]


def test_phases_are_matched_apart():
    def generation() -> Profile:
        draws, graph = np.random.default_rng(8), Graph()
        w = graph.parameter("w", draws.standard_normal((D, D)) / 6)
        for phase in ("prefill", "decode"):
            graph.phase = phase
            graph.op("mm", np.matmul, graph.input(phase, draws.standard_normal((T, D))), w)
        return graph.profile()

    matching = match(generation(), generation())
    assert [region.phase for region in matching.regions] == ["prefill", "decode"]
    weights = [pair for pair in matching.pairs if pair.evidence == "parameter"]
    assert len(weights) == 1
    assert len(matching.groups) == 2
