"""Profiles that nobody would record on purpose get a clear answer, in bounded time.

The work is counted in function calls, which a shared machine does not disturb.
"""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

import cProfile
import pstats
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from archives import members_of, with_header
from graphs import Graph
from matched import checked, held
from profiles import an_origin, small_profile

from magneton.errors import InvalidProfile
from magneton.match import match
from magneton.match.model import Matching
from magneton.profile.model import Operator, OpId, Profile, ReplayKey, Role, Stack, Value, ValueId
from magneton.profile.sketches import FREQUENCIES, SKETCH_VERSION, Sketches, stack_sketches
from magneton.profile.store import load
from magneton.record.sketching import sketch_array

WIDTH = 16


def calls_of(baseline: Profile, candidate: Profile) -> tuple[int, Matching]:
    """How many functions a matching calls, and what it finds."""
    counted = cProfile.Profile()
    matching = counted.runcall(match, baseline, candidate)
    return pstats.Stats(counted).total_calls, matching  # type: ignore[attr-defined]  # the stubs lack it


def model(seed: int, operators: int) -> Profile:
    draws, graph = np.random.default_rng(seed), Graph()
    x = graph.input("x", draws.standard_normal((WIDTH, WIDTH)))
    for _ in range(operators):
        w = graph.parameter("w", draws.standard_normal((WIDTH, WIDTH)) / 4)
        x = graph.op("mm", lambda a, w: np.tanh(a @ w), x, w)
    return graph.profile()


def same_value(many: int, *, chained: bool) -> Profile:
    """``many`` operators that all compute one value: each from the last result, or from the input."""
    value, graph = np.random.default_rng(0).standard_normal((4, 4)), Graph()
    first = x = graph.input("x", value)
    for _ in range(many):
        (made,) = graph.ops("same", lambda _: (value,), x, sketched=False)
        x = made if chained else first
    one = sketch_array(value)
    return replace(graph.profile(), sketches=stack_sketches([one] * (many + 1)))


def reasons(matching: Matching) -> tuple[set[str], set[str]]:
    return {left.reason for left in matching.only_baseline}, {left.reason for left in matching.only_candidate}


def test_different_models_have_nothing_in_common():
    few, _ = calls_of(model(1, 50), model(2, 60))
    many, matching = calls_of(model(1, 200), model(2, 240))
    assert matching.regions == ()
    assert len(matching.only_baseline) == 200
    assert len(matching.only_candidate) == 240
    assert reasons(matching) == ({"no-counterpart-value"}, {"no-counterpart-value"})
    assert many <= 4.4 * few


def test_one_operator_against_one():
    matching = checked(model(1, 1), model(1, 1))
    assert [(r.baseline, r.candidate) for r in matching.regions] == [((0,), (0,))]
    other = checked(model(1, 1), model(2, 1))
    assert len(other.only_baseline) + sum(len(r.baseline) for r in other.regions) == 1


def test_one_operator_against_many():
    matching = checked(model(1, 1), model(1, 50))
    assert (matching.regions[0].baseline, matching.regions[0].candidate) == ((0,), (0,))
    assert len(matching.only_candidate) == 49
    assert not matching.only_baseline


@pytest.mark.parametrize("operators", [0, 1, 30])
def test_no_operator_at_all(operators: int):
    nothing = Graph().profile()
    for baseline, candidate in ((nothing, model(1, operators)), (model(1, operators), nothing)):
        matching = checked(baseline, candidate)
        assert matching.regions == ()
        assert matching.pairs == ()
        assert len(matching.only_baseline) + len(matching.only_candidate) == operators


def test_an_operator_without_inputs_or_outputs():
    graph = Graph()
    graph.op("nothing", lambda: np.zeros((0, 4)))
    graph.sync("wait", graph.input("x", np.ones(3)))
    profile = graph.profile()
    assert held(match(profile, profile), "baseline") == {0: 1, 1: 1}


@pytest.mark.parametrize("chained", [True, False], ids=["chained", "apart"])
def test_ten_thousand_equal_values(chained: bool):
    """One class holds them all; no pair of them is tried on its own."""
    few = calls_of(*[same_value(1000, chained=chained)] * 2)[0]
    many, matching = calls_of(*[same_value(10_000, chained=chained)] * 2)
    assert held(matching, "baseline").total() == 10_000
    assert many <= 12 * few


@pytest.mark.parametrize("chained", [True, False], ids=["chained", "apart"])
def test_equal_values_of_different_number(chained: bool):
    baseline, candidate = (same_value(many, chained=chained) for many in (2000, 1500))
    matching = checked(baseline, candidate)
    assert held(matching, "baseline").total() == 2000
    assert held(matching, "candidate").total() == 1500


def test_values_of_low_entropy_only():
    """Masks and counters: nothing anchors, and nothing is guessed."""

    def program(many: int, shift: int) -> Profile:
        draws, graph = np.random.default_rng(3), Graph()
        x = graph.input("x", draws.integers(0, 3, (8, 8)))
        for k in range(many):
            x = graph.op("step", lambda a, k=k: (a * (k + 2) + shift) % 3, x)
        return graph.profile()

    few = calls_of(program(100, 1), program(100, 1))[0]
    many, matching = calls_of(program(600, 1), program(600, 1))
    assert held(matching, "baseline").total() == 600
    assert not any(pair.evidence == "value" for pair in matching.pairs)
    assert many <= 8 * few
    other = match(program(100, 1), program(100, 2))
    assert held(other, "candidate").total() == 100


def test_values_that_were_never_sketched():
    def program(many: int) -> Profile:
        graph = Graph()
        x = graph.input("x", np.random.default_rng(4).standard_normal((4, 4)))
        for _ in range(many):
            (x,) = graph.ops("opaque", lambda a: (a + 1,), x, sketched=False)
        return graph.profile()

    matching = checked(program(3000), program(2500))
    assert not any(pair.evidence == "value" for pair in matching.pairs)
    assert held(matching, "baseline").total() == 3000
    left = reasons(matching)
    assert left[0] | left[1] <= {"not-sketched"}


def test_sketches_of_another_version_are_refused_with_what_to_do(tmp_path: Path):
    path = tmp_path / "other.mgn"
    members = members_of(small_profile(), tmp_path)
    path.write_bytes(with_header(members, sketch_version=SKETCH_VERSION + 1))
    with pytest.raises(InvalidProfile, match=rf"sketch version {SKETCH_VERSION + 1}") as caught:
        load(path)
    assert f"reads up to {SKETCH_VERSION}" in str(caught.value)
    assert "upgrade magneton" in caught.value.hint


LAYER = ("norm", "q", "k", "v", "mix", "o", "add", "norm", "up", "act", "down", "add")
WITH_WEIGHTS = ("norm", "q", "k", "v", "o", "up", "down")


def large(operators: int, *, cut: int, noise: float = 0.0) -> Profile:
    """Layers of a decoder with made-up sketches; every ``cut``-th norm is two operators.

    Both sides draw the same sketches for the same values, give or take ``noise``.
    """
    values: list[Value] = []
    rows: list[Operator] = []
    seeds: list[int] = []  # which content a value has

    def value(content: int, role: Role, producer: int | None) -> ValueId:
        values.append(
            Value(
                value_id=ValueId(len(values)),
                role=role,
                name="",
                shape=(64, 64),
                dtype="float32",
                producer=None if producer is None else OpId(producer),
                storage_id=len(values),
                version=0,
            )
        )
        seeds.append(content)
        return values[-1].value_id

    def operator(name: str, layer: int, read: tuple[ValueId, ...], content: int) -> ValueId:
        at = len(rows)
        made = value(content, "activation", at)
        rows.append(
            replace(
                PLAIN, op_id=OpId(at), name=name, module_path=f"layers.{layer}", inputs=read, outputs=(made,)
            )
        )
        return made

    x = value(0, "input", None)
    content, layer = 1, 0
    while len(rows) < operators:
        kept = x
        made: dict[str, ValueId] = {}
        for name in LAYER:
            weights = (value(content + 1, "parameter", None),) if name in WITH_WEIGHTS else ()
            if name == "norm" and layer % cut == 0:
                x = operator("scale", layer, (x,), content + 2)
            read = {"mix": tuple(made.get(n, x) for n in "qkv"), "add": (kept, x)}.get(name, (x,))
            if name in ("q", "k", "v"):
                read = (made["norm"],)
            x = made[name] = operator(name, layer, (*read, *weights), content)
            kept = x if name == "add" else kept
            content += 3
        layer += 1
    return Profile(
        origin=an_origin(),
        operators=tuple(rows),
        values=tuple(values),
        sketches=made_up(np.array(seeds), noise),
        stacks=small_profile().stacks[:1] or (Stack(frames=()),),
        keys=(ReplayKey(key_id=PLAIN.key_id, skipped=None),),
    )


PLAIN = small_profile().operators[0]


def made_up(contents: np.ndarray, noise: float) -> Sketches:
    """Sketches of independent values of one shape and scale, equal where ``contents`` are.

    As if each held thirty different numbers: farther apart than those of larger tensors would be.
    """
    known = int(contents.max()) + 1
    numbers = np.random.default_rng(5).standard_normal((known, 30))
    features = [np.exp(1j * 2.0 ** (k / 2 - 1) * numbers).mean(1)[contents] for k in range(FREQUENCIES)]
    means = np.stack(features, 1)
    means += noise * np.random.default_rng(len(contents)).standard_normal(means.shape)
    count, size = 4096, len(contents)
    nothing = np.zeros(size, dtype=np.int64)
    return Sketches(
        known=np.ones(size, dtype=np.bool_),
        count=np.full(size, count),
        pos_inf=nothing,
        neg_inf=nothing,
        nan=nothing,
        huge=nothing,
        distinct=np.full(size, count, dtype=np.int32),
        rms=np.sqrt(np.square(numbers).mean(1))[contents],
        first=np.full(size, -2, dtype=np.int32),
        cos_sum=np.real(means) * count,
        sin_sum=np.imag(means) * count,
        projection=np.zeros((size, 2)),
    )


def test_work_grows_with_the_number_of_operators_and_no_faster():
    few, many = (calls_of(large(n, cut=2), large(n, cut=3, noise=1e-5))[0] for n in (1000, 4000))
    assert many <= 4.4 * few


def test_twenty_thousand_operators():
    """All are paired, layer by layer."""
    baseline, candidate = large(20_000, cut=2), large(20_000, cut=3, noise=1e-5)
    start_s = time.process_time()
    matching = match(baseline, candidate)
    assert time.process_time() - start_s < 60
    assert not matching.only_baseline
    assert held(matching, "candidate").total() == len(candidate.operators)
    assert len(matching.regions) >= 0.9 * len(candidate.operators)


def test_many_operators_of_different_models():
    """As many values of one shape and scale on either side, none of them common."""
    baseline = large(4000, cut=2)
    contents = np.arange(len(baseline.values)) + 3 * len(baseline.operators)
    candidate = replace(baseline, sketches=made_up(contents, 0.0))
    matching = match(baseline, candidate)
    assert matching.regions == ()
    assert held(matching, "baseline").total() == len(baseline.operators)
