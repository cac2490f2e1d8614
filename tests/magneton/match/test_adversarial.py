"""Values that look alike and are not: they must never pass for equal on the strength of their sketch.

How much of a value may be replaced by other draws of its distribution before the sketch shows it: an eighth
is always seen. The share of draws that went unseen, of 200 each at 10^3 and 10^4 elements and 20 at 10^5, in
five families:

    replaced   1/16   1/32   1/64    1/128   1/256   1/512   1/1024
    unseen      0      0     0.7 %     4 %    24 %    77 %     95 %

The size of the value hardly matters: both the difference and the threshold go with 1/sqrt(n).
"""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from graphs import Graph
from numpy.typing import NDArray

from magneton.match import match
from magneton.match.candidates import close_pairs
from magneton.match.distance import anchors, threshold
from magneton.match.model import ValuePair
from magneton.profile.distance import distances
from magneton.profile.model import Profile
from magneton.profile.sketches import Sketches, stack_sketches
from magneton.record.torch.sketching import sketch_tensor

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, int], Array]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Several threads of a shared machine wait for each other longer than one computes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def softmax_rows(draws: np.random.Generator, count: int) -> Array:
    weights = np.exp(draws.standard_normal((-(-count // 50), 50)))
    return (weights / weights.sum(-1, keepdims=True)).reshape(-1)[:count]


FAMILIES: dict[str, Draw] = {
    "normal": lambda draws, n: draws.standard_normal(n),
    "uniform": lambda draws, n: draws.random(n),
    "relu": lambda draws, n: np.maximum(draws.standard_normal(n), 0),
    "softmax": softmax_rows,
    "heavy": lambda draws, n: draws.standard_t(2.5, n),
    "lognormal": lambda draws, n: np.exp(draws.standard_normal(n)),
    "outliers": lambda draws, n: draws.standard_normal(n) * np.where(draws.random(n) < 1e-3, 60, 1),
    "tokens": lambda draws, n: draws.integers(0, 50_000, n),
    "bytes": lambda draws, n: draws.integers(0, 256, n),
    "dozen": lambda draws, n: draws.integers(0, 12, n) / 12,
}


def sketched(arrays: Sequence[Array]) -> Sketches:
    return stack_sketches([sketch_tensor(torch.from_numpy(np.ascontiguousarray(a))) for a in arrays])


def margins(one: Sequence[Array], other: Sequence[Array]) -> NDArray[np.float64]:
    """The distance of each pair as a multiple of what equal values may be apart."""
    sketches_x, sketches_y = sketched(one), sketched(other)
    rows = np.arange(len(one))
    return distances(sketches_x, rows, sketches_y, rows) / threshold(sketches_x.count)


def single(array: Array) -> Profile:
    """A program whose only result is ``array``, computed from an input that both sides share."""
    graph = Graph()
    graph.op("make", lambda _: array, graph.input("x", np.linspace(-1.0, 2.0, 77)))
    return graph.profile()


def recognised(baseline: Profile, candidate: Profile) -> list[ValuePair]:
    """Pairs of computed values that only their sketches speak for."""
    pairs = match(baseline, candidate).pairs
    computed = [p for p in pairs if baseline.values[p.baseline[0]].role == "activation"]
    return [p for p in computed if p.evidence in ("value", "composite", "order")]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("count", "values"), [(100, 200), (1000, 120), (10_000, 30), (100_000, 5)])
def test_no_two_of_many_independent_tensors_match(family: str, count: int, values: int):
    """The rate of false matches: 275 000 pairs in all, none of which matches."""
    draws = np.random.default_rng(count)
    sketches = sketched([FAMILIES[family](draws, count) for _ in range(values)])
    assert anchors(sketches).all()
    rows = np.arange(values)
    half = rows[: values // 2], rows[values // 2 :]
    one, other = np.triu_indices(values, 1)
    margin = distances(sketches, one, sketches, other) / threshold(sketches.count[one])
    assert int(np.sum(margin <= 1)) == 0
    assert len(close_pairs(sketches, half[0], sketches, half[1])[0]) == 0


@pytest.mark.parametrize("family", ["normal", "uniform", "relu", "heavy"])
@pytest.mark.parametrize(("count", "values"), [(1_000_000, 4), (10_000_000, 2)])
def test_large_independent_tensors_do_not_match(family: str, count: int, values: int):
    draws = torch.Generator().manual_seed(7)
    normal = [torch.randn(count, generator=draws) for _ in range(values)]
    make: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "normal": lambda x: x,
        "uniform": torch.special.ndtr,
        "relu": torch.relu,
        "heavy": lambda x: x * x.abs().exp(),
    }
    sketches = stack_sketches([sketch_tensor(make[family](x)) for x in normal])
    for one, other in pairwise(range(values)):
        apart = distances(sketches, np.array([one]), sketches, np.array([other]))
        assert apart > 2 * threshold(sketches.count[[one]])


@pytest.mark.parametrize("family", ["normal", "uniform", "relu", "softmax", "heavy", "tokens"])
@pytest.mark.parametrize("count", [100, 3000, 100_000])
def test_independent_results_are_not_paired_by_value(family: str, count: int):
    draws = np.random.default_rng(count + 1)
    baseline, candidate = (single(FAMILIES[family](draws, count)) for _ in range(2))
    assert recognised(baseline, candidate) == []


CHANGES: dict[str, Callable[[Array], Array]] = {
    "negated": np.negative,
    "scaled": lambda x: 1.01 * x,
    "shifted": lambda x: x + 0.02,
    "rectified": lambda x: np.maximum(-x, 0),
    "squared": np.square,
    "sorted-signs": lambda x: np.sign(x) * np.abs(x[::-1]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("count", [100, 3000, 100_000])
def test_what_is_made_of_a_value_is_not_that_value(change: str, count: int):
    """Of rectified values too: relu(x) against relu(-x)."""
    x = np.random.default_rng(count + 2).standard_normal(count)
    before = np.maximum(x, 0) if change == "rectified" else x
    assert recognised(single(before), single(CHANGES[change](x))) == []


@pytest.mark.parametrize("change", [c for c in CHANGES if c != "rectified"])
@pytest.mark.parametrize("family", ["normal", "heavy", "outliers"])
def test_changes_show_in_every_family(family: str, change: str):
    """Families around zero: there a sign is hardest to see."""
    draws = np.random.default_rng(3)
    for count, repeats in ((100, 40), (10_000, 10)):
        values = [FAMILIES[family](draws, count) for _ in range(repeats)]
        assert margins(values, [CHANGES[change](x) for x in values]).min() > 1


@pytest.mark.parametrize("change", ["negated", "scaled", "shifted"])
def test_changes_show_in_large_tensors(change: str):
    """At 10^7 elements the threshold no longer shrinks, but signs differ by 1/sqrt(n) still."""
    x = torch.randn(10_000_000, generator=torch.Generator().manual_seed(8)).numpy()
    assert margins([x], [CHANGES[change](x).astype(np.float32)]).min() > 1


def test_a_shift_shows_down_to_the_noise_of_its_size():
    """A shift of c rms moves the features by about 0.6 c; below the threshold that is noise."""
    x = np.random.default_rng(4).standard_normal(10_000)
    limit = float(threshold(np.array([x.size]))[0])
    assert margins([x], [x + 4 * limit]).min() > 1
    assert margins([x], [x + limit / 4]).max() < 1


@pytest.mark.parametrize("family", ["normal", "uniform", "relu", "softmax", "heavy"])
@pytest.mark.parametrize(("count", "repeats"), [(1000, 100), (10_000, 30), (100_000, 4)])
def test_a_slab_of_other_draws_shows(family: str, count: int, repeats: int):
    """An eighth always; a sixty-fourth nearly always (see above)."""
    draws = np.random.default_rng(count + 5)
    values = [FAMILIES[family](draws, count) for _ in range(repeats)]
    for share, most_unseen in ((8, 0.0), (64, 0.1)):
        margin = margins(values, [with_slab(x, FAMILIES[family](draws, count), share) for x in values])
        assert np.mean(margin <= 1) <= most_unseen


@pytest.mark.parametrize("share", [8, 64])
def test_a_slab_of_a_large_tensor_shows(share: int):
    draws = torch.Generator().manual_seed(9)
    x, other = (torch.randn(10_000_000, generator=draws).numpy() for _ in range(2))
    assert margins([x], [with_slab(x, other, share)]).min() > 1


def test_a_thousandth_of_other_draws_does_not_show():
    """The limit of the method, held here so that nobody relies on more."""
    draws = np.random.default_rng(6)
    values = [draws.standard_normal(10_000) for _ in range(20)]
    margin = margins(values, [with_slab(x, draws.standard_normal(10_000), 1024) for x in values])
    assert np.mean(margin <= 1) > 0.5


def with_slab(x: Array, other: Array, share: int) -> Array:
    changed = x.copy()
    changed[: x.size // share] = other[: x.size // share]
    return changed


@pytest.mark.parametrize(
    "rearrange",
    [lambda x: x.T, lambda x: x[::-1], lambda x: np.random.default_rng(1).permutation(x), np.ravel],
    ids=["transposed", "reversed", "shuffled-rows", "flat"],
)
def test_rearranged_elements_are_the_same_value(rearrange: Callable[[Array], Array]):
    """Sketches are blind to order on purpose; the projections are not."""
    x = np.random.default_rng(7).standard_normal((40, 30))
    baseline, candidate = single(x), single(rearrange(x))
    (pair,) = recognised(baseline, candidate)
    one, other = (
        p.sketches.projection[v[0]] for p, v in ((baseline, pair.baseline), (candidate, pair.candidate))
    )
    same_order = np.array_equal(np.ravel(x), np.ravel(rearrange(x)))
    assert np.allclose(one, other, atol=1e-9) is same_order


@pytest.mark.parametrize("count", [100, 10_000])
def test_one_program_with_near_misses_on_the_other_side_pairs_only_what_is_equal(count: int):
    """Every near miss at once: none may stand in for the value or for another near miss."""
    x = np.random.default_rng(8).standard_normal(count)
    graph = Graph()
    source = graph.input("x", np.linspace(-1.0, 2.0, 77))
    for name, change in CHANGES.items():
        graph.op(name, lambda _, change=change: change(x), source)
    graph.op("slab", lambda _: with_slab(x, x[::-1] * np.sqrt(2) - 0.1, 8), source)
    assert recognised(single(x), graph.profile()) == []
    graph.op("equal", lambda _: x[::-1].copy(), source)
    (pair,) = recognised(single(x), graph.profile())
    assert pair.candidate == (len(CHANGES) + 2,)
