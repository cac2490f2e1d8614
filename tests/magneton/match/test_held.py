"""Caches are carried along: they tie no step and no layer to another."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from magneton.match.matching import match
from magneton.record.torch.capture import trace_callable

STEPS = 4


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def tokens() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(1, 32, generator=generator) for _ in range(STEPS)]


def grown(*fed: Tensor) -> Tensor:
    """Each step joins its keys to those of all steps before."""
    keys = torch.ones(8, 32) * 0.1
    results: list[Tensor] = []
    for x in fed:
        keys = torch.cat([keys, torch.sin(x)])
        results.append(torch.softmax(torch.cos(x) @ keys.T, dim=-1) @ keys)
    return torch.cat(results)


def written(memory: Tensor, *fed: Tensor) -> Tensor:
    """Each step writes its keys into memory that is there, and an operator picks what is filled."""
    results: list[Tensor] = []
    for at, x in enumerate(fed, start=8):
        memory.index_copy_(0, torch.tensor([at]), torch.sin(x))
        keys = memory.index_select(0, torch.arange(at + 1))
        results.append(torch.softmax(torch.cos(x) @ keys.T, dim=-1) @ keys)
    return torch.cat(results)


def filled(memory: Tensor, *fed: Tensor) -> Tensor:
    """The same memory, all of it looked at, with what is not filled masked out."""
    results: list[Tensor] = []
    for at, x in enumerate(fed, start=8):
        memory.index_copy_(0, torch.tensor([at]), torch.sin(x))
        scores = (torch.cos(x) @ memory.T).masked_fill(torch.arange(len(memory)) > at, float("-inf"))
        results.append(torch.softmax(scores, dim=-1) @ memory)
    return torch.cat(results)


def room() -> Tensor:
    memory = torch.zeros(8 + STEPS, 32)
    memory[:8] = 0.1
    return memory


@pytest.mark.parametrize("other", [written, filled])
def test_steps_of_a_cache_stay_apart_however_it_is_kept(other: Callable[..., Tensor]):
    one, two = trace_callable(grown, tokens()), trace_callable(other, [room(), *tokens()])
    matching = match(one, two)
    softmax = {op.op_id for op in one.operators if op.name.startswith("aten._softmax")}
    found = [len(softmax.intersection(region.baseline)) for region in matching.regions]
    assert sum(found) == STEPS
    assert max(found) == 1
