"""Megatron-core's own tensor-parallel code on the meta device: its linears, its loss, and its GPT as a whole.

Build functions take ``(rank, groups)`` with an axis ``tp``, which may be of one rank: Megatron's code is the
same for any number. ``on_meta`` must be open while they are built and captured: Megatron asks CUDA for the
device of its buffers and for random states, of which there are none.
"""

# Megatron-core is no dependency of ours: where it is not installed, its types are not known.
# pyright: reportMissingImports=false, reportUnknownParameterType=false

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.tensor_parallel import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
    vocab_parallel_cross_entropy,
)
from megatron.core.tensor_parallel.random import initialize_rng_tracker
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor, nn
from torch.distributed import ProcessGroup

Groups = Mapping[str, ProcessGroup]
Build = Callable[[int, Groups], object]
TOKENS, BATCH, VOCABULARY = 8, 2, 96
WIDTH, INNER = 64, 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What of Megatron is built, whether ranks hold parts of the sequence, and whether it is right."""

    make: Callable[[TransformerConfig, bool], tuple[nn.Module, tuple[Tensor, ...]]]
    cuts_sequence: bool = False
    is_modern: bool = False
    is_right: bool = True


@contextmanager
def on_meta() -> Generator[None]:
    """Megatron's buffers are on the meta device, and its random states are those of inference: none."""
    initialize_rng_tracker(inference_rng_tracker=True)
    with patch("torch.cuda.current_device", lambda: torch.device("meta")):
        yield


def build_of(part: Part) -> Build:
    """The build function of a part."""

    def build(rank: int, groups: Groups) -> object:
        ranks = groups["tp"].size()
        parallel_state.destroy_model_parallel()
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=ranks, create_gloo_process_groups=False
        )
        config = _config(ranks, cuts_sequence=part.cuts_sequence, is_modern=part.is_modern)
        with torch.device("meta"):
            module, args = part.make(config, part.cuts_sequence)
        return module.eval(), args

    return build


def _config(ranks: int, *, cuts_sequence: bool, is_modern: bool) -> TransformerConfig:
    """``is_modern``: root-mean-square norms, gated perceptrons, shared key heads, no biases."""
    modern = {
        "normalization": "RMSNorm",
        "num_query_groups": 4,
        "gated_linear_unit": True,
        "activation_func": nn.functional.silu,
        "add_bias_linear": False,
    }
    return TransformerConfig(
        num_layers=2,
        hidden_size=WIDTH,
        ffn_hidden_size=INNER,
        num_attention_heads=8,
        tensor_model_parallel_size=ranks,
        sequence_parallel=cuts_sequence and ranks > 1,
        use_cpu_initialization=True,
        perform_initialization=False,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        pipeline_dtype=torch.float32,
        **(modern if is_modern else {}),
    )


class Perceptron(nn.Module):
    """Columns, then rows; x [T, B, W]."""

    def __init__(self, config: TransformerConfig, *, forgets_sum: bool = False) -> None:
        super().__init__()
        self.up = ColumnParallelLinear(WIDTH, INNER, config=config, init_method=None)
        self.down = RowParallelLinear(
            INNER,
            WIDTH,
            config=config,
            init_method=None,
            bias=not forgets_sum,
            input_is_parallel=True,
            skip_bias_add=forgets_sum,
        )
        # Set by Megatron itself where the token dispatcher of experts adds up: not the case here.
        self.down.explicit_expert_comm = forgets_sum

    def forward(self, x: Tensor) -> Tensor:
        wide, _ = self.up(x)
        return self.down(nn.functional.gelu(wide))[0]


class Loss(nn.Module):
    """The cross entropy of logits that are cut along the vocabulary."""

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        return vocab_parallel_cross_entropy(logits.clone(), target)


class Norm(nn.LayerNorm):
    """A norm as Megatron calls for one; its own refuses parts of a sequence without CUDA."""

    def __init__(self, config: TransformerConfig, hidden_size: int, eps: float = 1e-5) -> None:
        super().__init__(hidden_size, eps=eps)


def _ids() -> Tensor:
    return torch.zeros(BATCH, TOKENS, dtype=torch.long)


def _stream(config: TransformerConfig) -> Tensor:
    tokens = TOKENS // config.tensor_model_parallel_size if config.sequence_parallel else TOKENS
    return torch.empty(tokens, BATCH, WIDTH)


def _perceptron(config: TransformerConfig, cuts_sequence: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Perceptron(config), (_stream(config),)


def _unsummed(config: TransformerConfig, cuts_sequence: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    forgets = config.tensor_model_parallel_size > 1
    return Perceptron(config, forgets_sum=forgets), (_stream(config),)


def _embedding(config: TransformerConfig, cuts_sequence: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """[B, T] -> [T, B, W] with parts of the sequence, else [B, T, W]."""
    embedding = VocabParallelEmbedding(
        VOCABULARY, WIDTH, init_method=None, reduce_scatter_embeddings=cuts_sequence, config=config
    )
    return embedding, (_ids(),)


def _loss(config: TransformerConfig, cuts_sequence: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    logits = torch.empty(TOKENS, BATCH, VOCABULARY // config.tensor_model_parallel_size)
    return Loss(), (logits, _ids().t().contiguous())


def _gpt(config: TransformerConfig, cuts_sequence: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Logits stay with the rank that holds their part of the vocabulary."""
    spec = get_gpt_layer_local_spec()
    if cuts_sequence:
        spec.submodules.input_layernorm = spec.submodules.pre_mlp_layernorm = Norm
        spec = TransformerBlockSubmodules(layer_specs=[spec] * config.num_layers, layer_norm=Norm)
    model = GPTModel(
        config=config,
        transformer_layer_spec=spec,
        vocab_size=VOCABULARY,
        max_sequence_length=TOKENS,
        position_embedding_type="rope",
        parallel_output=True,
    )
    mask = torch.zeros(1, 1, TOKENS, TOKENS, dtype=torch.bool)
    return model, (_ids(), _ids(), mask)


PARTS: Mapping[str, Part] = {
    "perceptron": Part(make=_perceptron),
    "perceptron on parts of the sequence": Part(make=_perceptron, cuts_sequence=True),
    "perceptron whose sum is forgotten": Part(make=_unsummed, is_right=False),
    "embedding": Part(make=_embedding),
    "embedding to parts of the sequence": Part(make=_embedding, cuts_sequence=True),
    "cross entropy": Part(make=_loss),
    "GPT": Part(make=_gpt),
    "GPT on parts of the sequence": Part(make=_gpt, cuts_sequence=True),
    "GPT with gates and shared key heads": Part(make=_gpt, is_modern=True),
}
