"""Models as PyTorch's and Transformers' own code writes or distributes them, built on the meta device.

All are build functions for ``scalify.capture.captured``: of what runs on one device, or on the ranks of a
mesh with an axis ``tp``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Placement, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from scalify.capture import captured
from scalify.capture.target import Build
from scalify.ir.graph import Graph
from scalify.ir.mesh import SINGLE, Mesh

Groups = Mapping[str, ProcessGroup]
Plan = Mapping[str, ParallelStyle]
WIDTH, INNER, VOCABULARY, EXPERTS = 64, 32, 48, 8
BATCH, TOKENS = 2, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What attention differs in."""

    head: int = 16
    is_causal: bool = True


CAUSAL = Kind()


class Attention(nn.Module):
    """As many heads as the projections are wide, so that a rank may hold fewer of them."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.kind = kind
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            w(x).unflatten(-1, (-1, self.kind.head)).transpose(1, 2) for w in (self.wq, self.wk, self.wv)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.kind.is_causal)
        return self.wo(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """A gated perceptron with biases on the way up and down."""

    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Linear(WIDTH, INNER)
        self.w2 = nn.Linear(INNER, WIDTH)
        self.w3 = nn.Linear(WIDTH, INNER, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    """Attention and feed-forward behind norms, on a residual stream."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.attention, self.feed_forward = Attention(kind), FeedForward()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Decoder(nn.Module):
    """Two layers between an embedding and a head."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer(kind) for _ in range(2))
        self.norm = nn.RMSNorm(WIDTH)
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tok_embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


class Router(nn.Module):
    """The two likeliest of several experts for each token, and how likely they are."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        values, indices = self.gate(x).softmax(-1).topk(2, dim=-1)
        return values / values.sum(-1, keepdim=True), indices


TENSOR_PARALLEL: Plan = {
    "attention.wq": ColwiseParallel(),
    "attention.wk": ColwiseParallel(),
    "attention.wv": ColwiseParallel(),
    "attention.wo": RowwiseParallel(),
    "feed_forward.w1": ColwiseParallel(),
    "feed_forward.w3": ColwiseParallel(),
    "feed_forward.w2": RowwiseParallel(),
}


def _gathered(dim: int, *, name: str) -> Plan:
    """A part of the layer whose input is taken to lie along ``dim``, and whose output goes back there."""
    last = {"attention": "wo", "feed_forward": "w2"}[name]
    norm = {"attention": "attention_norm", "feed_forward": "ffn_norm"}[name]
    return {
        norm: SequenceParallel(use_local_output=True),
        name: PrepareModuleInput(input_layouts=(Shard(dim),), desired_input_layouts=(Replicate(),)),
        f"{name}.{last}": RowwiseParallel(output_layouts=Shard(dim)),
    }


SEQUENCE_PARALLEL: Plan = {
    **TENSOR_PARALLEL,
    **_gathered(1, name="attention"),
    **_gathered(1, name="feed_forward"),
}
"""Norms on parts of the sequence, the rest on parts of the width: the usual plan for a layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan:
    """How a layer is distributed, whether ranks are given parts of the sequence, and whether it is right."""

    plan: Plan
    cuts_sequence: bool = False
    is_right: bool = True


LAYER_PLANS: Mapping[str, LayerPlan] = {
    "tensor parallel": LayerPlan(plan=TENSOR_PARALLEL),
    "sequence parallel": LayerPlan(plan=SEQUENCE_PARALLEL, cuts_sequence=True),
    "queries by rows": LayerPlan(
        plan={
            **TENSOR_PARALLEL,
            "attention.wq": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(-1)),
        }
    ),
    "gate gathered and cut again": LayerPlan(
        plan={
            **TENSOR_PARALLEL,
            "feed_forward.w1": ColwiseParallel(output_layouts=Replicate()),
            "feed_forward.w3": ColwiseParallel(output_layouts=Replicate()),
            "feed_forward.w2": RowwiseParallel(input_layouts=Replicate()),
        }
    ),
    "feed-forward gathered along the batch": LayerPlan(
        plan={**SEQUENCE_PARALLEL, **_gathered(0, name="feed_forward")}, cuts_sequence=True
    ),
    "attention gathered along the batch": LayerPlan(
        plan={**SEQUENCE_PARALLEL, **_gathered(0, name="attention")}, cuts_sequence=True, is_right=False
    ),
    "sum of attention forgotten": LayerPlan(
        plan={**TENSOR_PARALLEL, "attention.wo": RowwiseParallel(output_layouts=Partial())}, is_right=False
    ),
    "sum of feed-forward forgotten": LayerPlan(
        plan={**TENSOR_PARALLEL, "feed_forward.w2": RowwiseParallel(output_layouts=Partial())},
        is_right=False,
    ),
}


def _decoder_plan(head: Placement) -> Plan:
    return {
        "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=head),
        **{
            f"layers.{number}.{name}": style
            for number in range(2)
            for name, style in SEQUENCE_PARALLEL.items()
        },
    }


def layer_alone(kind: Kind = CAUSAL) -> Build:
    """The layer on one device."""

    def build() -> object:
        with torch.device("meta"):
            return Layer(kind).eval(), (torch.empty(BATCH, TOKENS, WIDTH),)

    return build


def layer_by(plan: LayerPlan, kind: Kind = CAUSAL) -> Build:
    """The layer as PyTorch distributes it by a plan."""

    def build(rank: int, groups: Groups) -> object:
        ranks = groups["tp"].size()
        mesh = init_device_mesh("cpu", (ranks,), mesh_dim_names=("tp",))
        with torch.device("meta"):
            layer = Layer(kind).eval()
            x = torch.empty(BATCH, TOKENS // ranks if plan.cuts_sequence else TOKENS, WIDTH)
        return parallelize_module(layer, mesh, dict(plan.plan)), (x,)

    return build


def decoder_alone(kind: Kind = CAUSAL) -> Build:
    """The decoder on one device."""

    def build() -> object:
        with torch.device("meta"):
            return Decoder(kind).eval(), (torch.zeros(BATCH, TOKENS, dtype=torch.long),)

    return build


def decoder_by(head: Placement, kind: Kind = CAUSAL) -> Build:
    """The decoder as PyTorch distributes it, norms on parts of the sequence; ``head`` is where logits lie."""

    def build(rank: int, groups: Groups) -> object:
        mesh = init_device_mesh("cpu", (groups["tp"].size(),), mesh_dim_names=("tp",))
        with torch.device("meta"):
            decoder, ids = Decoder(kind).eval(), torch.zeros(BATCH, TOKENS, dtype=torch.long)
        return parallelize_module(decoder, mesh, dict(_decoder_plan(head))), (ids,)

    return build


ROUTERS: Mapping[str, ParallelStyle] = {
    "by experts": ColwiseParallel(output_layouts=Replicate()),
    "by width": RowwiseParallel(input_layouts=Replicate()),
}


def router_alone() -> object:
    """The router on one device."""
    with torch.device("meta"):
        return Router().eval(), (torch.empty(BATCH, TOKENS, WIDTH),)


def router_by(style: ParallelStyle) -> Build:
    """The router with its gate cut."""

    def build(rank: int, groups: Groups) -> object:
        mesh = init_device_mesh("cpu", (groups["tp"].size(),), mesh_dim_names=("tp",))
        module, args = Router().to("meta").eval(), (torch.empty(BATCH, TOKENS, WIDTH, device="meta"),)
        return parallelize_module(module, mesh, {"gate": style}), args

    return build


SIZES: Mapping[str, int] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 64,
}
FAMILIES: Mapping[str, Mapping[str, int]] = {
    "Llama": SIZES,
    "Qwen2": SIZES,
    "GPT2": {
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "vocab_size": 64,
        "n_positions": 64,
        "bos_token_id": 0,
        "eos_token_id": 0,
    },
}


def language_model(family: str, attention: str) -> Build:
    """A tiny model of Transformers' with its own attention ("eager") or PyTorch's ("sdpa")."""
    import transformers

    def build() -> object:
        config = getattr(transformers, f"{family}Config")(**FAMILIES[family], attn_implementation=attention)
        name = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
        with torch.device("meta"):
            module = getattr(transformers, name)(config).eval()
            return module, (torch.zeros(BATCH, TOKENS, dtype=torch.long),), {"use_cache": False}

    return build


def graph_of(build: Build, *, ranks: int = 1) -> Graph:
    """The captured graph, of one device or of ranks."""
    return captured(build, name="model", mesh=SINGLE if ranks == 1 else Mesh(axes=(("tp", ranks),)))
