"""Matching of recorded PyTorch programs."""

import importlib.util
import math
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from soundness import unsound
from torch import Tensor, nn

from magneton.match import match
from magneton.match.model import Matching
from magneton.profile.distance import distances
from magneton.profile.model import Profile
from magneton.profile.sketches import stack_sketches
from magneton.record.sketching import sketch_array
from magneton.record.torch.capture import trace_callable

BENCH = Path(__file__).parents[4] / "shared" / "data" / "match_bench" / "pairs.py"
HEAVY = "wide_same_distribution"  # sketches thirty tensors of a million elements


def load_bench() -> ModuleType | None:
    if not BENCH.exists():
        return None
    spec = importlib.util.spec_from_file_location("match_bench_pairs", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bench = load_bench()
NAMES = [] if bench is None else [name for name in bench.PAIRS if name != HEAVY]


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def paired(profile: Profile, matching: Matching, side: str) -> float:
    return sum(len(getattr(region, side)) for region in matching.regions) / len(profile.operators)


def tagged(profile: Profile, tags: dict[str, Tensor]) -> dict[str, set[int]]:
    """The values of ``profile`` that hold the elements of each tag."""
    rows = np.arange(len(profile.values))
    found: dict[str, set[int]] = {}
    for name, tensor in tags.items():
        sketch = stack_sketches([sketch_array(tensor.double().numpy())])
        near = distances(sketch, np.zeros_like(rows), profile.sketches, rows) < 1e-6
        found[name] = {int(row) for row in rows[near]}
    return found


@pytest.mark.skipif(bench is None, reason="the benchmark's pairs are not beside this checkout")
@pytest.mark.parametrize("name", NAMES)
def test_benchmark_pair(name: str):
    assert bench is not None
    pair = bench.PAIRS[name]()
    inputs_x = tuple(pair["args"])
    inputs_y = tuple(pair.get("argsB", inputs_x))
    with bench.collect() as tags_x:
        pair["A"](*inputs_x)
    with bench.collect() as tags_y:
        pair["B"](*inputs_y)
    baseline, candidate = trace_callable(pair["A"], inputs_x), trace_callable(pair["B"], inputs_y)
    matching = match(baseline, candidate)

    assert unsound(baseline, candidate, matching) == []
    assert paired(baseline, matching, "baseline") == paired(candidate, matching, "candidate") == 1.0
    where_x, where_y = tagged(baseline, tags_x), tagged(candidate, tags_y)
    at_boundaries = {k for region in matching.regions for k in (*region.produces, *region.consumes)}
    for tag in tags_x.keys() & tags_y.keys():
        hits = [
            k
            for k, p in enumerate(matching.pairs)
            if set(p.baseline) & where_x[tag] and set(p.candidate) & where_y[tag]
        ]
        assert set(hits) & at_boundaries, tag


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, *, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            mixed = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v
        return x + self.o(mixed.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_attention_in_two_ways_and_precisions(half: bool):
    torch.manual_seed(0)
    eager = nn.Sequential(*(Attention(64, 4, fused=False) for _ in range(3)))
    fused = nn.Sequential(*(Attention(64, 4, fused=True) for _ in range(3)))
    fused.load_state_dict(eager.state_dict())
    x = torch.randn(2, 48, 64)
    baseline = trace_callable(eager, (x,))
    candidate = trace_callable(fused.bfloat16(), (x.bfloat16(),)) if half else trace_callable(fused, (x,))
    matching = match(baseline, candidate)
    assert len(matching.regions) == 3 * 6  # q, k, v, attention, o, add
    assert {len(group.regions) for group in matching.groups} == {3}
    assert unsound(baseline, candidate, matching) == []


def test_deep_bfloat16_pairs_with_float32_by_drift_and_neighbours():
    """Eight blocks round values farther apart than independent ones of a larger tensor would be."""
    torch.manual_seed(0)
    exact = nn.Sequential(*(Attention(64, 4, fused=False) for _ in range(8)))
    half = nn.Sequential(*(Attention(64, 4, fused=False) for _ in range(8)))
    half.load_state_dict(exact.state_dict())
    x = torch.randn(4, 48, 64)
    low = trace_callable(half.bfloat16(), (x.bfloat16(),), with_drift=True)
    baseline = trace_callable(exact, (x,), with_drift=True)
    matching = match(baseline, low)
    undrifted = replace(low, values=tuple(replace(value, drift=None) for value in low.values))
    assert len(matching.regions) > len(match(baseline, undrifted).regions)
    assert unsound(baseline, low, matching) == []
    names = [[profile.operators[op].name for op in ops] for region in matching.regions
             for profile, ops in ((baseline, region.baseline), (low, region.candidate))]  # fmt: skip
    assert [sorted(one) for one in names[::2]] == [sorted(other) for other in names[1::2]]


def test_low_precision_copies_of_an_input_are_that_input():
    weight, x = torch.randn(64, 64) / 8, torch.randn(40, 64)

    def plain(x: Tensor) -> Tensor:
        return torch.tanh(x @ weight) + x

    def mixed(x: Tensor) -> Tensor:
        half = x.half()
        return torch.tanh(half @ weight.half()).float() + half.float()

    baseline = trace_callable(plain, (x,))
    candidate = trace_callable(mixed, (x,))
    matching = match(baseline, candidate)
    assert unsound(baseline, candidate, matching) == []
    assert paired(baseline, matching, "baseline") == paired(candidate, matching, "candidate") == 1.0
    assert len(matching.regions) == 3  # product, tanh, sum


def test_forward_and_backward_of_an_activation_in_two_ways():
    def train(silu: bool):
        def step(x: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, ...]:
            with torch.enable_grad():
                w, v = w.detach().requires_grad_(), v.detach().requires_grad_()
                h = F.linear(x, w)
                loss = F.linear(F.silu(h) if silu else h * torch.sigmoid(h), v).square().mean()
                return torch.autograd.grad(loss, [w, v])

        return step

    torch.manual_seed(0)
    inputs = torch.randn(32, 24), torch.randn(40, 24), torch.randn(24, 40)
    baseline, candidate = trace_callable(train(True), inputs), trace_callable(train(False), inputs)
    matching = match(baseline, candidate)
    assert paired(baseline, matching, "baseline") == paired(candidate, matching, "candidate") == 1.0
    assert len(matching.regions) >= 10


def test_llama_eager_against_sdpa_is_fine_grained_in_every_layer():
    transformers = pytest.importorskip("transformers")
    profiles: list[Profile] = []
    for attention in ("eager", "sdpa"):
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            hidden_size=64,
            intermediate_size=160,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=199,
            attn_implementation=attention,
        )
        ids = torch.arange(32).reshape(2, 16) * 5 % 199
        profiles.append(trace_callable(transformers.LlamaForCausalLM(config).eval(), (ids,)))
    baseline, candidate = profiles
    matching = match(baseline, candidate)
    layer = [
        r
        for r in matching.regions
        if baseline.operators[r.baseline[0]].module_path.startswith("model.layers.1")
    ]
    assert len(layer) >= 30
    assert unsound(baseline, candidate, matching) == []
    assert paired(candidate, matching, "candidate") == 1.0
    assert {left.reason for left in matching.only_baseline} <= {"setup", "dead"}
    names = [{baseline.operators[op].name for op in r.baseline} for r in matching.regions]
    attentions = {k for k, found in enumerate(names) if any("softmax" in name for name in found)}
    assert any(set(group.regions) == attentions for group in matching.groups)
    assert len(attentions) == 3


def test_filling_an_empty_cache_is_one_piece_of_work_however_it_is_done():
    weight, x = torch.randn(3, 64, 64), torch.randn(2, 8, 64)
    empty = torch.empty(2, 0, 64)

    def joined(x: Tensor) -> Tensor:
        q, k, v = (x @ w for w in weight)
        k, v = torch.cat([empty, k], 1), torch.cat([empty, v], 1)
        return F.scaled_dot_product_attention(q, k, v) @ weight[0]

    def copied(x: Tensor) -> Tensor:
        q, k, v = (x @ w for w in weight)
        keys, values = torch.zeros(2, 2, 12, 64)
        keys[:, :8].copy_(k)
        values[:, :8].copy_(v)
        return F.scaled_dot_product_attention(q, keys[:, :8], values[:, :8]) @ weight[0]

    baseline, candidate = trace_callable(joined, (x,)), trace_callable(copied, (x,))
    matching = match(baseline, candidate)
    where = {op: number for number, region in enumerate(matching.regions) for op in region.baseline}
    other = {op: number for number, region in enumerate(matching.regions) for op in region.candidate}
    joins = [where[op.op_id] for op in baseline.operators if op.name.startswith("aten.cat")]
    copies = [other[op.op_id] for op in candidate.operators if op.name.startswith("aten.copy_")]
    assert joins == copies
    assert len(joins) == 2


def test_steps_that_extend_a_cache_from_before_are_one_region_each():
    """Joined to a new tensor each time, or written into room that was there with the past in it."""
    torch.manual_seed(0)
    weight, inputs = torch.randn(64, 64) / 8, torch.randn(3, 2, 1, 64)
    past, room = torch.randn(2, 9, 64), torch.zeros(2, 12, 64)
    room[:, :9] = past

    def mixed(x: Tensor, past: Tensor) -> Tensor:
        return torch.softmax(x @ past.transpose(1, 2), -1) @ past

    def joined(past: Tensor) -> list[Tensor]:
        results: list[Tensor] = []
        for x in inputs:
            past = torch.cat([past, x @ weight], 1)
            results.append(mixed(x, past))
        return results

    def written(room: Tensor) -> list[Tensor]:
        results: list[Tensor] = []
        for step, x in enumerate(inputs):
            room[:, 9 + step : 10 + step] = x @ weight
            results.append(mixed(x, room[:, : 10 + step]))
        return results

    baseline, candidate = trace_callable(joined, (past,)), trace_callable(written, (room,))
    matching = match(baseline, candidate)
    joins = [op.op_id for op in baseline.operators if op.name.startswith("aten.cat")]
    regions = [region for region in matching.regions if set(region.baseline) & set(joins)]
    assert len(joins) == len(regions) == 3
    assert all(len(region.produces) == 1 for region in regions)
    assert unsound(baseline, candidate, matching) == []
