"""B58: a fused norm of bf16 activations takes the place of one whose gain is f32."""

from pathlib import Path

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import TWO_RANKS, Built, Config, Engine, Groups, Layer, inputs
from silent_bugs.kernels import rms_norm
from torch import Tensor, nn


class Norm(nn.Module):
    """Computed in f32; the gain is one more than what is stored."""

    def __init__(self, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, dtype=dtype))

    def forward(self, x: Tensor, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x, residual [T, H]."""
        if residual is not None:
            x = x + residual
        return self.normed(x), x

    def normed(self, x: Tensor) -> Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return (wide * scale * (self.weight + 1).float()).to(x.dtype)


class FusedNorm(Norm):
    """The kernel where types agree, as it needs them to."""

    def normed(self, x: Tensor) -> Tensor:
        if self.weight.dtype != x.dtype:
            return super().normed(x)
        return rms_norm(x, self.weight + 1, 1e-6)


class AlwaysFusedNorm(Norm):
    def normed(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight + 1, 1e-6)  # planted


class NormedLayer(Layer):
    """One gain in f32, as it was trained, and one in bf16."""

    norm: type[Norm] = Norm

    def __init__(self, config: Config, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__(config, attention, mlp)
        self.input_layernorm = self.norm(config.hidden, torch.bfloat16)
        self.post_attention_layernorm = self.norm(config.hidden, torch.float32)


class FusedLayer(NormedLayer):
    norm = FusedNorm


class AlwaysFusedLayer(NormedLayer):
    norm = AlwaysFusedNorm


def in_bf16(module: nn.Module) -> nn.Module:
    """All but the norms of layers, which have types of their own."""
    for name, parameter in module.named_parameters():
        if not name.endswith("layernorm.weight"):
            parameter.data = parameter.data.to(torch.bfloat16)
    for buffer in module.buffers():
        buffer.data = buffer.data.to(torch.bfloat16)
    return module


def baseline() -> Built:
    return in_bf16(Engine(layer=NormedLayer)), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return in_bf16(Engine(Team.of(groups["tp"]), layer=AlwaysFusedLayer)), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return in_bf16(Engine(Team.of(groups["tp"]), layer=FusedLayer)), inputs()


ENTRY = Entry(
    baseline=baseline,
    buggy=buggy,
    fixed=fixed,
    mesh=TWO_RANKS,
    ops=Path(__file__).parents[1] / "kernel_references.py",
    expected="refused",
)
