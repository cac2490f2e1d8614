"""Two ways to write one program, under everything that real runs do to numbers."""

# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

import math
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from decoders import HEADS, VOCABULARY, WIDTH, Decoder, Recorded, judged, recorded
from graphs import Graph
from matched import checked
from torch import Tensor

from magneton.match.model import Matching
from magneton.profile.model import OpId, Profile
from magneton.record.torch.capture import trace_callable
from magneton.record.torch.internals import unobserved

LAYERS = 2
# A layer: norm (with its two factors and the mean), QKV, attention, o, add, norm, gate, up, glu, down, add.
FINE = 20 * LAYERS
LARGEST = 33  # operators: attention spelled out, with its mask and the views of each head


@pytest.fixture(autouse=True)
def inference():
    """On one thread: the tensors are too small for more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        yield
    torch.set_num_threads(threads)


@torch.library.custom_op("magneton_tests::rough_linear", mutates_args=())
def rough_linear(x: Tensor, w: Tensor, seed: int) -> Tensor:
    """Every product off by 2e-3 of itself, three of them by 0.2: one operator, so no exact result is seen."""
    with unobserved("cpu"):
        draws = torch.Generator().manual_seed(seed)
        exact = F.linear(x, w)
        noise = 2e-3 * torch.randn(exact.shape, generator=draws)
        outliers = torch.randint(exact.numel(), (3,), generator=draws)
        noise.view(-1)[outliers] = 0.2 * noise.view(-1)[outliers].sign()
        return exact * (1 + noise)


def tokens(batch: int = 2, length: int = 24) -> Tensor:
    return torch.randint(0, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))


def in_two_ways(*args: Tensor, **options: Any) -> tuple[Recorded, Recorded]:
    spelled, fused = (Decoder(fused=fused, layers=LAYERS, **options) for fused in (False, True))
    return recorded(spelled, *args), recorded(fused, *args)


def largest(matching: Matching) -> int:
    return max(len(region.baseline) for region in matching.regions)


def assert_fine(baseline: Recorded, candidate: Recorded) -> Matching:
    """Sound, fine-grained, complete, and each labelled value paired with itself."""
    matching = checked(baseline.profile, candidate.profile)
    found, wrong = judged(baseline, candidate, matching)
    assert wrong == []
    assert found == set(baseline.labels)
    assert len(matching.regions) >= FINE
    assert largest(matching) <= LARGEST
    assert not matching.only_baseline
    assert not matching.only_candidate
    return matching


def test_the_same_numbers():
    assert_fine(*in_two_ways(tokens()))


@pytest.mark.parametrize("fused", [False, True], ids=["alike", "fused"])
def test_half_precision_loses_nothing(fused: bool):
    half = Decoder(fused=fused, layers=4).half()
    matching = assert_fine(recorded(Decoder(fused=False, layers=4), tokens()), recorded(half, tokens()))
    assert len(matching.regions) >= 80


@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("fused", [False, True], ids=["alike", "fused"])
def test_bfloat16_against_float32(layers: int, fused: bool):
    """With the drift that a recording measures: layer upon layer, low precision leads away from float32."""
    spelled, half = Decoder(fused=False, layers=layers), Decoder(fused=fused, layers=layers).bfloat16()
    baseline = recorded(spelled, tokens(), with_drift=True)
    candidate = recorded(half, tokens(), with_drift=True)
    assert_mostly_found(baseline, candidate, layers=layers, share=0.9)


def test_bfloat16_on_both_sides():
    baseline, candidate = (
        recorded(Decoder(fused=fused, layers=4).bfloat16(), tokens(), with_drift=True)
        for fused in (False, True)
    )
    assert_mostly_found(baseline, candidate, layers=4, share=0.9)


@pytest.mark.parametrize("batch", [4, 16])
def test_equal_prompts_in_bfloat16(batch: int):
    """All rows round alike: noise averages out over one prompt only, however large the tensor."""
    ids = tokens(1).repeat(batch, 1)
    baseline = recorded(Decoder(fused=False, layers=LAYERS), ids, with_drift=True)
    candidate = recorded(Decoder(fused=True, layers=LAYERS).bfloat16(), ids, with_drift=True)
    assert_mostly_found(baseline, candidate, layers=LAYERS, share=0.65)


@pytest.mark.parametrize("layers", [1, 2])
def test_bfloat16_without_drift_takes_no_value_for_another(layers: int):
    """Profiles of an older release: coarser, but as sound."""
    baseline = recorded(Decoder(fused=False, layers=layers), tokens())
    candidate = recorded(Decoder(fused=True, layers=layers).bfloat16(), tokens())
    assert_mostly_found(baseline, candidate, layers=layers, share=0.8)


@pytest.mark.parametrize("fused", [False, True], ids=["alike", "fused"])
def test_products_as_rough_as_those_of_a_tensor_core(fused: bool):
    seeds = count()
    rough = Decoder(fused=fused, layers=LAYERS, project=lambda x, w: rough_linear(x, w, next(seeds)))
    baseline, candidate = recorded(Decoder(fused=False, layers=LAYERS), tokens()), recorded(rough, tokens())
    assert_mostly_found(baseline, candidate, layers=LAYERS, share=0.8)


def assert_mostly_found(baseline: Recorded, candidate: Recorded, *, layers: int, share: float) -> None:
    """Sound, no label taken for another, and at least ``share`` of the labels paired."""
    matching = checked(baseline.profile, candidate.profile)
    found, wrong = judged(baseline, candidate, matching)
    assert wrong == []
    assert len(found) >= share * len(baseline.labels)
    assert len(matching.regions) >= 15 * layers


@pytest.mark.parametrize("adapted", [False, True], ids=["against-none", "against-the-same"])
def test_an_adapter_that_adds_nothing(adapted: bool):
    baseline = recorded(Decoder(fused=False, layers=LAYERS, adapted=True), tokens())
    candidate = recorded(Decoder(fused=True, layers=LAYERS, adapted=adapted), tokens())
    matching = assert_fine(baseline, candidate)
    where = {op: k for k, region in enumerate(matching.regions) for op in region.baseline}
    for layer in range(LAYERS):
        read = {v.value_id for v in baseline.profile.values if f"blocks.{layer}.adapter" in v.name}
        assert len(read) == 2
        places = {where[op.op_id] for op in baseline.profile.operators if read & set(op.inputs)}
        assert len(places) == (2 if adapted else 1)


def test_one_matrix_as_embedding_and_head():
    baseline, candidate = in_two_ways(tokens(), tied=True)
    matching = assert_fine(baseline, candidate)
    values = baseline.profile.values
    both = [k for k, p in enumerate(matching.pairs) if values[p.baseline[0]].name in ("embedding", "head")]
    readers = [region for region in matching.regions if set(region.consumes) & set(both)]
    assert len(both) == 1
    assert len(readers) == 2


def test_one_layer_repeated():
    spelled, fused = (Decoder(fused=fused, layers=6, same=True) for fused in (False, True))
    baseline, candidate = recorded(spelled, tokens()), recorded(fused, tokens())
    matching = assert_fine(baseline, candidate)
    assert len(matching.regions) >= 6 * 20
    assert {pair.evidence for pair in matching.pairs} <= {"input", "parameter", "value", "composite"}


def test_layers_that_do_nearly_nothing_keep_their_places():
    """A residual stream that hardly moves: the k-th layer's values are almost those of the next."""

    def program(pieces: bool) -> Profile:
        draws, graph = np.random.default_rng(3), Graph()
        x = graph.input("x", draws.standard_normal((24, 32)))
        for k in range(8):
            graph.module = f"layers.{k}"
            w = graph.parameter("w", draws.standard_normal((32, 32)) * 1e-4)
            if pieces:
                x = graph.op("add", np.add, x, graph.op("mm", np.matmul, x, w))
            else:
                x = graph.op("addmm", lambda a, w: a + a @ w, x, w)
        return graph.profile()

    matching = checked(program(True), program(False))
    assert [(r.baseline, r.candidate) for r in matching.regions] == [
        ((2 * k, 2 * k + 1), (k,)) for k in range(8)
    ]


@pytest.mark.parametrize("hidden", [-math.inf, torch.finfo(torch.float32).min], ids=["inf", "finfo.min"])
def test_causal_masks(hidden: float):
    mask = torch.full((24, 24), hidden).triu(1)
    assert_fine(*in_two_ways(tokens(), mask))


def test_rows_of_nan():
    mask = torch.zeros(24, 24)
    mask[20:] = math.nan
    spelled, fused = (Decoder(fused=fused, layers=1) for fused in (False, True))
    baseline, candidate = recorded(spelled, tokens(), mask), recorded(fused, tokens(), mask)
    assert bool(torch.isnan(baseline.labels["0.attended"]).any())
    matching = checked(baseline.profile, candidate.profile)
    found, wrong = judged(baseline, candidate, matching)
    assert wrong == []
    assert found == set(baseline.labels)


def test_all_is_nan():
    """Nothing can be recognised by value; what is left must still be sound and complete."""
    mask = torch.full((24, 24), math.nan)
    baseline, candidate = in_two_ways(tokens(), mask)
    matching = checked(baseline.profile, candidate.profile)
    assert judged(baseline, candidate, matching)[1] == []


def test_other_masks_are_told_apart():
    """finfo.min where the other side has -inf: as good as equal to the softmax, but not equal."""
    causal = torch.ones(24, 24).triu(1).bool()
    masks = (torch.zeros(24, 24).masked_fill(causal, v) for v in (-math.inf, torch.finfo(torch.float32).min))
    baseline, candidate = (recorded(Decoder(fused=False, layers=LAYERS), tokens(), mask) for mask in masks)
    matching = checked(baseline.profile, candidate.profile)
    found, wrong = judged(baseline, candidate, matching)
    assert wrong == []
    assert found == set(baseline.labels)
    given = {v.value_id for v in baseline.profile.values if v.name == "args.1"}
    assert not any(set(p.baseline) & given for p in matching.pairs)


@pytest.mark.parametrize("batch", [4, 16])
def test_a_batch_of_equal_prompts(batch: int):
    assert_fine(*in_two_ways(tokens(1).repeat(batch, 1)))


def test_a_batch_broadcast_from_one_prompt():
    spelled, fused = (Decoder(fused=fused, layers=LAYERS) for fused in (False, True))
    one = tokens(1)
    assert_fine(recorded(spelled, one.expand(4, -1)), recorded(fused, one.repeat(4, 1)))


def test_very_large_masks():
    """A static causal mask over the longest context, of which a prompt reads a corner."""
    room, length = 4096, 32
    q, k, v = torch.randn(3, HEADS, length, WIDTH // HEADS, generator=torch.Generator().manual_seed(2))
    weight = torch.randn(WIDTH // HEADS, WIDTH, generator=torch.Generator().manual_seed(3))

    def spelled(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
        mask = torch.full((room, room), -math.inf).triu(1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask[:length, :length]
        return torch.softmax(scores, -1) @ v @ w

    def fused(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
        seen = torch.ones(room, room, dtype=torch.bool).tril()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:length, :length]) @ w

    baseline, candidate = (trace_callable(f, (q, k, v, weight)) for f in (spelled, fused))
    matching = checked(baseline, candidate)
    assert len(matching.regions) >= 2
    assert not matching.only_baseline
    assert not matching.only_candidate
    masks = {v.value_id for v in baseline.values if v.shape == (room, room)}
    assert not any(set(p.baseline) & masks and p.evidence == "value" for p in matching.pairs)


def test_integer_programs():
    ids = torch.randint(0, 50, (8, 64), generator=torch.Generator().manual_seed(4))

    def counted(ids: Tensor) -> Tensor:
        often = torch.bincount(ids.flatten(), minlength=50)
        before = often.cumsum(0)
        return before.gather(0, ids.flatten()).view(8, 64).argmax(-1)

    def summed(ids: Tensor) -> Tensor:
        often = torch.zeros(50, dtype=torch.int64).scatter_add(
            0, ids.flatten(), torch.ones_like(ids.flatten())
        )
        before = often.cumsum(0)
        return before[ids].argmax(-1)

    baseline, candidate = (trace_callable(f, (ids,)) for f in (counted, summed))
    matching = checked(baseline, candidate)
    place = {op: k for k, region in enumerate(matching.regions) for op in region.baseline}
    other = {op: k for k, region in enumerate(matching.regions) for op in region.candidate}
    for name, theirs in (
        ("bincount", "scatter_add"),
        ("cumsum", "cumsum"),
        ("gather", "index"),
        ("argmax", "argmax"),
    ):
        assert place[operator(baseline, name)] == other[operator(candidate, theirs)], name
    assert len(matching.regions) == 4


def residual(*, layers: int, sketched: bool = True, noise: float = 0.0) -> Profile:
    """h = tanh(x), x = h - cos(h) / 3, and so on: each h is read by two operators."""
    draws, graph = np.random.default_rng(1), Graph()
    x = graph.input("x", np.random.default_rng(0).standard_normal((12, 16)))
    for _ in range(layers):
        (h,) = graph.ops(
            "tanh", lambda a: (np.tanh(a) + noise * draws.standard_normal(a.shape),), x, sketched=sketched
        )
        x = graph.op("add", lambda a, b: a - b / 3, h, graph.op("cos", np.cos, h))
    return graph.profile()


@pytest.mark.parametrize("layers", [1, 4])
@pytest.mark.parametrize(
    "candidate", [{"noise": 0.05}, {"sketched": False}], ids=["noisier-than-allowed", "not-sketched"]
)
def test_regions_that_share_what_was_not_recognised_are_one(layers: int, candidate: dict[str, Any]):
    checked(residual(layers=layers), residual(layers=layers, **candidate))
    checked(residual(layers=layers, **candidate), residual(layers=layers, **candidate))


def operator(profile: Profile, name: str) -> OpId:
    (found,) = (op.op_id for op in profile.operators if op.name.split(".")[1] == name)
    return found


def test_broadcast_rows():
    row = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(5))
    w, v = torch.randn(2, WIDTH, WIDTH, generator=torch.Generator().manual_seed(6))

    def lazily(row: Tensor) -> Tensor:
        return torch.tanh(row.expand(32, -1) @ w) @ v

    def wholly(row: Tensor) -> Tensor:
        return torch.tanh(row.repeat(32, 1).mm(w)).mm(v)

    baseline, candidate = (trace_callable(f, (row,)) for f in (lazily, wholly))
    matching = checked(baseline, candidate)
    assert len(matching.regions) == 4  # the repeated row, its product, tanh, the last product
    assert not matching.only_baseline
    assert not matching.only_candidate


def test_one_row_computed_once_or_for_every_row():
    """Computing first and repeating then is other work than repeating first, but the same values."""
    row = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(5))
    w = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(6))

    def once(row: Tensor) -> Tensor:
        return torch.tanh(row @ w).expand(32, -1).cos()

    def for_each(row: Tensor) -> Tensor:
        return torch.tanh(row.repeat(32, 1) @ w).cos()

    baseline, candidate = (trace_callable(f, (row,)) for f in (once, for_each))
    matching = checked(baseline, candidate)
    assert operator(baseline, "cos") in {op for r in matching.regions for op in r.baseline}
    assert not matching.only_baseline
    assert not matching.only_candidate
