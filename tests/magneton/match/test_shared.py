"""Tables for several regions: built at once on one side, step by step on the other."""

import pytest
import torch
from torch import Tensor

from magneton.match.matching import match
from magneton.record.torch.capture import trace_callable

STEPS = 3


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def turned(x: Tensor, table: Tensor, scale: float) -> Tensor:
    return torch.tanh(x * scale * table) + torch.sin((x + 1.0) * scale * table)


def at_once(*fed: Tensor) -> Tensor:
    """Its table is four times that of the other, so that no value of it is recognised."""
    table = torch.outer(torch.arange(1, STEPS + 1), torch.arange(1.0, 33.0) / 32).cos() * 4.0
    return torch.stack([turned(torch.exp(x), table[at], 0.25) for at, x in enumerate(fed)])


def one_by_one(*fed: Tensor) -> Tensor:
    results: list[Tensor] = []
    for at, x in enumerate(fed, start=1):
        table = (torch.arange(1.0, 33.0) / 32 * at).sin().square().neg().add(1.0).sqrt()
        results.append(turned(torch.exp(x), table * (torch.arange(1.0, 33.0) / 32 * at).cos().sign(), 1.0))
    return torch.stack(results)


@pytest.mark.parametrize("swapped", [False, True])
def test_parts_stand_together_against_the_whole(swapped: bool):
    generator = torch.Generator().manual_seed(0)
    fed = [torch.rand(32, generator=generator) for _ in range(STEPS)]
    sides = trace_callable(at_once, fed), trace_callable(one_by_one, fed)
    matching = match(*(reversed(sides) if swapped else sides))
    shared = [region for region in matching.regions if region.shared]
    assert len(shared) == 1
    tables = [{op.op_id for op in side.operators if op.name.startswith("aten.cos")} for side in sides]
    found = (shared[0].baseline, shared[0].candidate)
    for side, operators in zip(reversed(tables) if swapped else tables, found, strict=True):
        assert side <= set(operators)
