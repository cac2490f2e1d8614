"""Shares of a layer are known exactly for models whose layers are known exactly."""

import pytest
import torch
from granularity import places_of
from paired_shares import Matched, matched, shares
from profiles import an_operator

from magneton.profile.model import Profile
from magneton.record.torch.capture import trace_callable
from magneton.workload import CALL

SHALLOW, DEEP = 1, 3


class _Layer(torch.nn.Module):
    """Two operators that work; a third of them asks the host for a number that nobody needs."""

    def __init__(self, *, asks: bool) -> None:
        super().__init__()
        self.gate = torch.nn.Parameter(torch.randn(48))
        self.asks = asks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.asks:
            x.sum().item()
        return torch.tanh(x * self.gate)


class _Stack(torch.nn.Module):
    def __init__(self, layers: int, *, asks: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(_Layer(asks=asks) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.exp(x)  # once, whatever the depth
        for layer in self.layers:
            x = layer(x)
        return x


def _profile(layers: int, *, asks: bool) -> Profile:
    given = torch.randn(32, 48, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return trace_callable(_Stack(layers, asks=asks), (given,))


@pytest.fixture(scope="module")
def pair() -> tuple[Matched, Matched]:
    shallow, deep = (matched(n, _profile(n, asks=False), _profile(n, asks=True)) for n in (SHALLOW, DEEP))
    return shallow, deep


def test_a_layer_is_what_a_deeper_model_does_more(pair: tuple[Matched, Matched]) -> None:
    found = shares(*pair)[CALL]
    assert [side.operators for side in found.whole] == [1 + 2 * DEEP, 1 + 3 * DEEP]
    assert [side.operators for side in found.layer] == [2, 3]
    assert [side.operators_paired for side in found.layer] == [2, 2]
    assert [side.regions for side in found.layer] == [2, 2]


def test_what_serves_a_synchronisation_only_is_told_apart(pair: tuple[Matched, Matched]) -> None:
    _, candidate = shares(*pair)[CALL].layer
    assert candidate.of_operators == pytest.approx(2 / 3)
    assert candidate.operators_for_syncs == 1
    assert candidate.of_operators_but_for_syncs == 1.0


def test_leftovers_are_told_by_kind_and_line(pair: tuple[Matched, Matched]) -> None:
    baseline, candidate = shares(*pair)[CALL].left
    assert baseline == ()
    assert {(it.kind.name, it.kind.reason, it.kind.works) for it in candidate} == {
        ("aten.sum.default", "sync", True),
        ("aten._local_scalar_dense.default", "sync", False),
    }
    for it in candidate:
        assert (it.times, it.per_layer) == (DEEP, 1)
        assert "test_paired_shares.py" in it.kind.source


def test_the_largest_region_lies_inside_the_layers(pair: tuple[Matched, Matched]) -> None:
    largest = shares(*pair)[CALL].largest
    assert largest is not None
    assert largest.where.startswith("layers.")
    assert largest.operators in ((("aten.mul.Tensor",),) * 2, (("aten.tanh.default",),) * 2)


def test_a_module_that_blocks_share_belongs_to_the_block_that_runs_it() -> None:
    paths = ["norm", "attn.q", "attn.rope", "attn.o"]
    first = [f"layers.0.{path}" for path in paths]
    second = ["layers.1.norm", "layers.1.attn.q", "layers.0.attn.rope", "layers.1.attn.o"]
    operators = [
        an_operator(at, module_path=path) for at, path in enumerate((*first, *second, *first, *second))
    ]
    expected = [(forward, block) for forward in (0, 1) for block in (0, 0, 0, 0, 1, 1, 1, 1)]
    assert list(places_of(operators).values()) == expected
