"""What frameworks' own code computes: two attentions of one model, and what PyTorch makes of a module."""

from functools import cache

import pytest
from framework_models import (
    CAUSAL,
    FAMILIES,
    LAYER_PLANS,
    ROUTERS,
    Kind,
    decoder_alone,
    decoder_by,
    graph_of,
    language_model,
    layer_alone,
    layer_by,
    router_alone,
    router_by,
)
from scalify_models import llama
from torch.distributed.tensor import Placement, Replicate, Shard

import scalify
from scalify.ir.graph import Graph
from scalify.verdict import Proved, Refuted

RIGHT = tuple(name for name, plan in LAYER_PLANS.items() if plan.is_right)
WRONG = tuple(name for name in LAYER_PLANS if name not in RIGHT)
OPEN = Kind(is_causal=False)
NARROW = Kind(head=4)
"""The scale of such heads is a half, of which PyTorch multiplies queries and keys with the square root."""

transformers = pytest.importorskip("transformers", reason="Transformers is not installed")


@cache
def _model(family: str, attention: str) -> Graph:
    return graph_of(language_model(family, attention))


@cache
def _layer(kind: Kind) -> Graph:
    return graph_of(layer_alone(kind))


@cache
def _decoder() -> Graph:
    return graph_of(decoder_alone())


@cache
def _llama(attention: str) -> Graph:
    return graph_of(getattr(llama, f"baseline_{attention}"))


@pytest.mark.parametrize("family", FAMILIES)
def test_both_attentions_of_a_language_model_are_one(family: str) -> None:
    eager, sdpa = _model(family, "eager"), _model(family, "sdpa")

    assert isinstance(scalify.verify(eager, sdpa), Proved)
    assert isinstance(scalify.verify(sdpa, eager), Proved)


def test_models_of_different_families_are_not_one() -> None:
    assert isinstance(scalify.verify(_model("Llama", "sdpa"), _model("Qwen2", "sdpa")), Refuted)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("ranks", [2, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (4, 8, 16))])
def test_llama_of_ranks_is_that_of_transformers(
    attention: str, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALIFY_LLAMA", "tiny")
    verdict = scalify.verify(_llama(attention), _llama_of(ranks))

    assert isinstance(verdict, Proved)
    assert verdict.work.ranks == ranks
    assert [output.layout for output in verdict.outputs] == ["dimension 2 sharded over tp"]


@cache
def _llama_of(ranks: int) -> Graph:
    return graph_of(llama.tensor_parallel, ranks=ranks)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", RIGHT)
def test_a_layer_that_pytorch_distributes_is_the_layer(name: str, ranks: int) -> None:
    candidate = graph_of(layer_by(LAYER_PLANS[name]), ranks=ranks)

    assert isinstance(scalify.verify(_layer(CAUSAL), candidate), Proved)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("kind", [CAUSAL, OPEN], ids=["causal", "open"])
def test_a_wrong_plan_is_not_proved(name: str, kind: Kind) -> None:
    candidate = graph_of(layer_by(LAYER_PLANS[name], kind), ranks=2)

    assert isinstance(scalify.verify(_layer(kind), candidate), Refuted)


def test_heads_are_scaled_by_roots() -> None:
    candidate = graph_of(layer_by(LAYER_PLANS["tensor parallel"], NARROW), ranks=2)

    assert isinstance(scalify.verify(_layer(NARROW), candidate), Proved)


@pytest.mark.parametrize(
    ("head", "layout"),
    [(Replicate(), "replicated"), (Shard(-1), "dimension 2 sharded over tp")],
    ids=["whole", "cut"],
)
def test_a_decoder_that_pytorch_distributes_is_the_decoder(head: Placement, layout: str) -> None:
    verdict = scalify.verify(_decoder(), graph_of(decoder_by(head), ranks=2))

    assert isinstance(verdict, Proved)
    assert [output.layout for output in verdict.outputs] == [layout]


@pytest.mark.parametrize("name", ROUTERS)
def test_a_router_that_pytorch_distributes_is_the_router(name: str) -> None:
    candidate = graph_of(router_by(ROUTERS[name]), ranks=2)

    assert isinstance(scalify.verify(graph_of(router_alone), candidate), Proved)
