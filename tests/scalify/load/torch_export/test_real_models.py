"""Transformers' own models, exported on the meta device: no weights, and nothing without a meaning."""

import numpy as np
import pytest
import torch
from torch_graphs import opaque_targets

from scalify.capture.exported import export, program_of
from scalify.capture.target import built
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph
from scalify.load.torch_export.translate import translate

transformers = pytest.importorskip("transformers", reason="Transformers is not installed")

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 64,
}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 64, "n_positions": 64}
MODELS = {
    "Llama": SIZES,
    "Qwen2": SIZES,
    "GPT2": GPT2,
}


def model(family: str, attention: str, device: str) -> torch.nn.Module:
    """A tiny causal language model in float64."""
    config = getattr(transformers, f"{family}Config")(**MODELS[family])
    config._attn_implementation = attention
    name = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    torch.manual_seed(0)
    with torch.device(device):
        return getattr(transformers, name)(config).eval().double()


def graph_of(module: torch.nn.Module, ids: torch.Tensor) -> Graph:
    graph = translate(program_of(export(built((module, (ids,), {"use_cache": False}))), name="model"))
    check(graph)
    return graph


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_real_model_has_no_opaque_node(family: str, attention: str) -> None:
    graph = graph_of(model(family, attention, "meta"), torch.zeros(1, 8, dtype=torch.long, device="meta"))

    assert opaque_targets(graph) == []
    layers = {node.scope for node in graph.nodes if ".1." in node.scope}
    assert len(layers) > 3
    assert all(
        node.site is not None and "transformers" in node.site.file for node in graph.nodes if node.scope
    )


@pytest.mark.parametrize(("family", "attention"), [("Llama", "sdpa"), ("GPT2", "eager")])
def test_a_real_model_computes_what_pytorch_does(family: str, attention: str) -> None:
    module = model(family, attention, "cpu")
    ids = torch.randint(0, 64, (2, 8))
    graph = graph_of(module, ids)

    state = {**module.state_dict(), **dict(module.named_buffers())}
    given = {
        label: (ids if node.attrs["role"] == "input" else state[label]).detach().numpy()
        for node in graph.inputs()
        for label in [str(node.attrs["name"])]
    }
    found = [evaluate(graph, given)[output.name][0] for output in graph.outputs]

    # Parts of both models compute in float32 whatever they are given.
    with torch.no_grad():
        logits = module(ids, use_cache=False).logits
    np.testing.assert_allclose(found[0], logits.numpy(), rtol=1e-3, atol=1e-6)
