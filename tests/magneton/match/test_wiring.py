"""Which values an operator depends on."""

import pytest
import torch
from torch import Tensor

from magneton.match.matching import match
from magneton.match.wiring import wire
from magneton.record.torch.capture import trace_callable
from magneton.workload import CALL


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def test_new_memory_depends_on_nothing():
    """Only its shape is that of what is given."""

    def step(x: Tensor) -> Tensor:
        return torch.empty_like(x).copy_(x * 3.0)

    wiring = wire(trace_callable(step, (torch.rand(4, 5),)), CALL)
    (made,) = (at for at, op in enumerate(wiring.operators) if op.effect == "alloc")
    assert wiring.inputs[made] == ()


def test_a_result_written_into_memory_shaped_like_another_value_ends_no_earlier_region():
    """An engine's attention writes into memory shaped like the queries; its projection depends on neither."""
    weight = torch.rand(16, 16)

    def plain(x: Tensor) -> Tensor:
        return torch.tanh(torch.sin(x)) @ weight

    def into_memory(x: Tensor) -> Tensor:
        query = torch.sin(x)
        out = torch.empty_like(query)
        out.copy_(torch.tanh(query))
        return out @ weight

    x = torch.rand(32, 16, generator=torch.Generator().manual_seed(0))
    matching = match(trace_callable(plain, (x,)), trace_callable(into_memory, (x,)))
    assert len(matching.regions) == 3


def test_places_in_a_cache_are_settings_and_glue_no_layers():
    """Both layers write where one operator says: it serves both and belongs to neither."""
    places = torch.randperm(64, generator=torch.Generator().manual_seed(1))

    def step(x: Tensor, caches: Tensor, shift: int) -> Tensor:
        where = torch.remainder(places + shift, 64)
        for layer in range(2):
            caches[layer].index_copy_(0, where, torch.sin(x))
            x = torch.tanh(caches[layer][where] * 1.5)
        return x

    x = torch.rand(64, 16, generator=torch.Generator().manual_seed(0))
    one, other = (trace_callable(step, (x, torch.zeros(2, 64, 16), shift)) for shift in (0, 64))
    shared = {op.op_id for op in one.operators if op.name.startswith(("aten.add", "aten.remainder"))}
    regions = match(one, other).regions
    assert all(shared.isdisjoint(region.baseline) for region in regions if not region.shared)


def test_a_slice_without_elements_shows_nothing_of_what_it_was_cut_from():
    """Rotary embeddings keep a part of each head as it is: here none."""
    weight = torch.rand(16, 16, generator=torch.Generator().manual_seed(1))

    def plain(x: Tensor) -> Tensor:
        return torch.tanh(torch.sin(x @ weight))

    def with_rest(x: Tensor) -> Tensor:
        product = x @ weight
        turned = torch.sin(product[:, :16])
        return torch.tanh(torch.cat([turned, product[:, 16:]], dim=1))

    x = torch.rand(32, 16, generator=torch.Generator().manual_seed(0))
    matching = match(trace_callable(plain, (x,)), trace_callable(with_rest, (x,)))
    assert len(matching.regions) == 3
