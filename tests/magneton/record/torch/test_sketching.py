"""The fast sketch gives the reference's numbers, and leaves no trace."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from magneton.profile.sketches import FREQUENCIES, Sketch
from magneton.record.sketching import sketch_array
from magneton.record.torch.sketching import CHUNK_CPU, PIECE, sketch_tensor
from magneton.record.torch.small_sketch import SMALL

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
COUNTS = st.one_of(st.integers(1, 300), st.integers(SMALL - 2, SMALL + 50), st.just(CHUNK_CPU + 17))


def reference(tensor: torch.Tensor) -> Sketch:
    wide = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
    sketch = sketch_array(wide.resolve_conj().numpy())
    assert sketch is not None
    return sketch


def sketched(tensor: torch.Tensor) -> Sketch:
    sketch = sketch_tensor(tensor)
    assert sketch is not None
    return sketch


def assert_agree(ours: Sketch, theirs: Sketch) -> None:
    for exact in ("count", "pos_inf", "neg_inf", "nan", "huge", "distinct"):
        assert getattr(ours, exact) == getattr(theirs, exact), exact
    assert ours.rms == pytest.approx(theirs.rms, rel=1e-6)
    shift = theirs.first - ours.first
    assert shift == 0 or (abs(shift) == 2 and abs(math.log2(theirs.rms) % 1 - 0.5) < 1e-6)
    for sums, expected in ((ours.cos_sum, theirs.cos_sum), (ours.sin_sum, theirs.sin_sum)):
        shared = range(max(0, shift), min(FREQUENCIES, FREQUENCIES + shift))
        assert [sums[i] for i in shared] == pytest.approx(
            [expected[i - shift] for i in shared], abs=1e-6 * ours.count
        )
    scale = ours.rms * math.sqrt(ours.count)
    assert ours.projection == pytest.approx(theirs.projection, abs=1e-5 * scale + 1e-300)


@settings(max_examples=60)
@given(count=COUNTS, seed=st.integers(0, 999), scale=st.floats(-18, 18), dtype=st.sampled_from(DTYPES))
def test_agrees_with_the_reference(count: int, seed: int, scale: float, dtype: torch.dtype):
    exponent = scale if dtype in (torch.float32, torch.float64, torch.bfloat16) else scale / 6
    values = torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    tensor = (values * 10.0**exponent).to(dtype)
    assert_agree(sketched(tensor), reference(tensor))


@settings(max_examples=40)
@given(count=COUNTS, seed=st.integers(0, 999), odd=st.lists(st.floats(width=32), max_size=8))
def test_counts_what_is_not_ordinary(count: int, seed: int, odd: list[float]):
    tensor = torch.randn(count, generator=torch.Generator().manual_seed(seed))
    for place, number in enumerate((*odd, math.inf)[:count]):
        tensor[-1 - place] = number
    assert_agree(sketched(tensor), reference(tensor))


@pytest.mark.parametrize("count", [7, SMALL + 1, CHUNK_CPU + 3])
@pytest.mark.parametrize("fill", [0.0, 0.7071, -3.0, math.inf, -math.inf, math.nan, 3.4e38, 1e-30])
def test_agrees_on_constants(count: int, fill: float):
    tensor = torch.full((count,), fill)
    assert_agree(sketched(tensor), reference(tensor))


KINDS = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16),
    *(torch.float8_e4m3fn, torch.complex64, torch.complex128),
)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("count", [33, SMALL + 100])
def test_agrees_for_every_kind_of_number(dtype: torch.dtype, count: int):
    drawn = torch.rand(count, 2, generator=torch.Generator().manual_seed(0)) * 100
    if dtype.is_complex:
        tensor = torch.view_as_complex(drawn).to(dtype)
    else:
        tensor = (drawn[:, 0] > 50 if dtype is torch.bool else drawn[:, 0]).to(dtype)
    assert_agree(sketched(tensor), reference(tensor))


def test_keeps_large_integers_apart():
    tensor = torch.arange(2**40, 2**40 + SMALL + 5)
    assert_agree(sketched(tensor), reference(tensor))


def test_looks_at_elements_in_logical_order():
    base = torch.randn(300, 70, generator=torch.Generator().manual_seed(1))
    for view in (base.T, base[::2], base[:, 3:9], base.unsqueeze(1).expand(300, 3, 70), base.flip(0)):
        assert_agree(sketched(view), reference(view.contiguous()))
    conjugated = torch.randn(9, 900, dtype=torch.complex64).conj()
    assert_agree(sketched(conjugated), reference(conjugated))


def test_gathers_a_strided_tensor_piece_by_piece():
    rows = 1 + PIECE // 1024
    tensor = torch.randn(1024, rows, generator=torch.Generator().manual_seed(2)).T
    ours, straight = sketched(tensor), sketched(tensor.contiguous())
    assert ours.projection == pytest.approx(straight.projection, rel=1e-4)
    assert ours.cos_sum == pytest.approx(straight.cos_sum, abs=1e-7 * ours.count)
    assert ours.distinct == straight.distinct


@pytest.mark.parametrize("shape", [(30, 40), (130, 140)])
@pytest.mark.parametrize("spoilt", [None, -math.inf, 1e38])
def test_takes_over_what_a_rearrangement_keeps(shape: tuple[int, int], spoilt: float | None):
    base = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    if spoilt is not None:
        base[0, :7] = spoilt
    known = sketched(base)
    assert_agree(known, reference(base))
    rearranged = sketch_tensor(base.T, rearranged_from=known)
    assert rearranged is not None
    assert_agree(rearranged, reference(base.T.contiguous()))
    assert rearranged.cos_sum == known.cos_sum


@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_gives_none_where_there_is_nothing_to_sketch():
    assert sketch_tensor(torch.empty(0)) is None
    assert sketch_tensor(torch.empty(3, device="meta")) is None
    assert sketch_tensor(torch.eye(3).to_sparse()) is None
    assert sketch_tensor(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)) is None
    assert sketch_tensor(torch.ones(11), cap=10) is None


class Witness(TorchDispatchMode):
    """Notes every operator that it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_dispatch__(self, func: object, types: object, args: object = (), kwargs: object = None):
        self.seen.append(func)
        raise AssertionError("nothing may be dispatched")


@pytest.mark.parametrize("count", [10, SMALL + 10])
def test_is_seen_by_no_mode_and_draws_no_number(count: int):
    tensor = torch.ones(count, requires_grad=True)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    numpy_before = np.random.get_state(legacy=False)["state"]["key"]
    with Witness() as witness, torch.autocast("cpu", dtype=torch.bfloat16):
        sketch = sketch_tensor(tensor)
    assert sketch is not None
    assert witness.seen == []
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state(legacy=False)["state"]["key"], numpy_before)
    assert tensor.grad_fn is None
    assert tensor._version == 0


def test_tells_independent_tensors_apart_and_recognises_noisy_ones():
    generator = torch.Generator().manual_seed(7)
    for count in (1_000, 100_000):
        tensor = torch.randn(count, generator=generator)
        threshold = min(2e-3, max(5e-5, 0.1 / math.sqrt(count)))
        noisy = tensor + 1e-4 * torch.randn(count, generator=generator)
        assert distance(sketched(tensor), sketched(noisy)) < threshold
        assert distance(sketched(tensor), sketched(tensor.bfloat16())) < threshold
        other = torch.randn(count, generator=generator)
        assert distance(sketched(tensor), sketched(other)) > threshold


def distance(one: Sketch, other: Sketch) -> float:
    """The largest difference of a mean feature at a shared frequency, or of the rms."""
    shift = other.first - one.first
    gaps = [abs(one.rms - other.rms) / max(one.rms, other.rms)]
    for i in range(max(0, shift), min(FREQUENCIES, FREQUENCIES + shift)):
        cosine = one.cos_sum[i] / one.count - other.cos_sum[i - shift] / other.count
        sine = one.sin_sum[i] / one.count - other.sin_sum[i - shift] / other.count
        gaps.append(math.hypot(cosine, sine))
    return max(gaps)
