"""A sketch that was patched says what a look at the whole says, and a cache write looks at what it wrote."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from magneton.profile.sketches import Sketch, stack_sketches
from magneton.record.torch.dataflow import Recorder
from magneton.record.torch.patches import PATCHED, PatchOf, patch_sketch
from magneton.record.torch.sketching import CAP, sketch_tensor
from magneton.record.torch.storage import Change
from magneton.workload import CALL

HEADS, POSITIONS, WIDTH = 4, 160, 64
WHOLE = HEADS * POSITIONS * WIDTH
assert WHOLE * 3 // 4 > PATCHED

Work = Callable[[], object]


class Counter:
    """A sketcher and a patcher that note how many elements they were given."""

    def __init__(self) -> None:
        self.looked: list[int] = []
        self.patched: list[int] = []

    def sketch(
        self, tensor: Tensor, *, cap: int = CAP, rearranged_from: Sketch | None = None
    ) -> Sketch | None:
        self.looked.append(tensor.numel())
        return sketch_tensor(tensor, cap=cap, rearranged_from=rearranged_from)

    def patch(self, known: Sketch, tensor: Tensor, changes: Sequence[Change]) -> Sketch | None:
        patched = patch_sketch(known, tensor, changes)
        if patched is not None:
            self.patched.append(sum(change.offsets.size for change in changes))
        return patched


def traced(work: Work, patch: PatchOf | None, counter: Counter | None = None) -> list[Sketch | None]:
    """The sketches of all values, in order."""
    recorder = Recorder(sketch=sketch_tensor if counter is None else counter.sketch, patch=patch)
    with torch.no_grad(), recorder.phase(CALL, {}) as recording:
        work()
    return [sketch for _, sketch in recording.trace.sketches]


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def assert_alike(ours: Sequence[Sketch | None], theirs: Sequence[Sketch | None]) -> None:
    one, other = stack_sketches(ours), stack_sketches(theirs)
    for exact in ("known", "count", "pos_inf", "neg_inf", "nan", "huge", "distinct", "first"):
        assert np.array_equal(getattr(one, exact), getattr(other, exact)), exact
    count = np.maximum(one.count, 1)[:, None]
    assert one.rms == pytest.approx(other.rms, rel=1e-6)
    assert one.cos_sum / count == pytest.approx(other.cos_sum / count, abs=1e-6)
    assert one.sin_sum / count == pytest.approx(other.sin_sum / count, abs=1e-6)
    scale = (one.rms * np.sqrt(one.count))[:, None]
    assert np.all(abs(one.projection - other.projection) <= 1e-5 * scale)


WRITING: Mapping[str, Callable[[Tensor, int], object]] = {
    "slice": lambda t, k: t[:, k % POSITIONS].copy_(drawn(HEADS, WIDTH, seed=k, dtype=t.dtype)),
    "strided": lambda t, k: t[k % HEADS, k % 50 :: 50, ::3].mul_(1.5),
    "along": lambda t, k: t.index_copy_(
        1, torch.tensor([k, k + 7]), drawn(HEADS, 2, WIDTH, seed=k, dtype=t.dtype)
    ),
    "twice": lambda t, k: t.index_add_(1, torch.tensor([k, k]), torch.ones(HEADS, 2, WIDTH, dtype=t.dtype)),
    "put": lambda t, k: t.index_put_(
        (torch.tensor([[0], [-1]]), torch.tensor([k, k, k - 3])), torch.tensor(0.5, dtype=t.dtype)
    ),
    "middle": lambda t, k: t.__setitem__((slice(None), torch.tensor([k])), 2.0),
    "mask": lambda t, k: t[k % HEADS, :3].fill_(-math.inf if k % 2 else 3e38),
    "spoil": lambda t, k: t[0, k % POSITIONS, :2].fill_(math.nan),
    "all": lambda t, k: t.mul_(1.0 + k / 1000),
    "masked": lambda t, k: t.masked_fill_(t > 3.0, 0.0),
}
READING: Mapping[str, Callable[[Tensor, int], object]] = {
    "whole": lambda t, k: t.sum(),
    "turned": lambda t, k: t.transpose(1, 2).sum(),
    "most": lambda t, k: t[:, : POSITIONS * 7 // 8].sum(),
    "flat": lambda t, k: t.view(-1).sum(),
}
LINES = st.tuples(st.sampled_from((*WRITING, *READING, *READING)), st.integers(0, 100))


@settings(max_examples=60, deadline=None)
@given(
    program=st.lists(LINES, min_size=2, max_size=10),
    dtype=st.sampled_from((torch.float32, torch.bfloat16, torch.float64)),
    zeros=st.booleans(),
)
def test_agrees_with_a_look_at_the_whole(program: list[tuple[str, int]], dtype: torch.dtype, zeros: bool):
    def work() -> None:
        cache = drawn(HEADS, POSITIONS, WIDTH, dtype=dtype) * (0.0 if zeros else 1.0)
        for name, number in program:
            {**WRITING, **READING}[name](cache, number)

    assert_alike(traced(work, patch_sketch), traced(work, None))


@pytest.mark.parametrize("write", ["slice", "along", "put", "middle"])
def test_a_small_write_into_a_known_cache_looks_at_no_more_than_it_wrote(write: str):
    cache, counter = drawn(HEADS, POSITIONS, WIDTH), Counter()

    def work() -> None:
        cache.sum()
        for step in range(5):
            WRITING[write](cache, step)
            cache.sum()

    traced(work, counter.patch, counter)
    assert counter.looked.count(WHOLE) == 1
    assert len(counter.patched) == 5
    assert max(counter.patched) <= 2 * HEADS * WIDTH


def test_each_arrangement_of_a_cache_is_patched_on_its_own():
    cache, counter = drawn(HEADS, POSITIONS, WIDTH), Counter()

    def work() -> None:
        for step in range(4):
            cache[:, step].fill_(0.5)
            cache.transpose(1, 2).sum()
            cache.view(-1).sum()

    traced(work, counter.patch, counter)
    assert counter.looked.count(WHOLE) <= 2
    assert len(counter.patched) >= 2 * 3


def test_the_first_write_into_zeros_is_patched_though_the_rms_was_none():
    cache, counter = torch.zeros(HEADS, POSITIONS, WIDTH), Counter()

    def work() -> None:
        cache.index_copy_(1, torch.arange(8), drawn(HEADS, 8, WIDTH))

    traced(work, counter.patch, counter)
    assert len(counter.patched) == 1


def test_a_write_of_much_of_a_cache_is_looked_at_whole():
    cache, counter = drawn(HEADS, POSITIONS, WIDTH), Counter()

    def work() -> None:
        cache.sum()
        cache[:, : POSITIONS // 2].copy_(drawn(HEADS, POSITIONS // 2, WIDTH, seed=1))
        cache.sum()

    traced(work, counter.patch, counter)
    assert counter.patched == []


def test_gives_none_where_the_frequencies_would_be_others():
    tensor = drawn(HEADS, POSITIONS, WIDTH)
    known = sketch_tensor(tensor)
    assert known is not None
    offsets = np.arange(WIDTH)
    before = tensor.view(-1)[:WIDTH].clone()
    change = Change(dtype=tensor.dtype, offsets=offsets, before=before, after=before * 1000)
    assert patch_sketch(known, tensor, [change]) is None
