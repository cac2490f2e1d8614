"""B58: a fused norm reads the memory of an f32 gain as what activations are, bf16."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import TWO_RANKS, Built, Config, Engine, Groups, Layer, inputs
from torch import Tensor, nn


class ShiftedNorm(nn.Module):
    """The gain is one more than what is stored; computed in f32, as the gain is."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if residual is not None:
            x = x + residual
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return (wide * scale * self.gain()).to(x.dtype), x

    def gain(self) -> Tensor:
        return self.weight + 1


class FusedNorm(ShiftedNorm):
    """The kernel takes a gain of the type of its activations."""

    def gain(self) -> Tensor:
        return (self.weight + 1).to(torch.bfloat16)


class MistakenNorm(ShiftedNorm):
    def gain(self) -> Tensor:
        return (self.weight + 1).view(torch.bfloat16)[: self.weight.shape[0]]  # planted


class NormedLayer(Layer):
    """With a norm of its own."""

    norm: type[ShiftedNorm] = ShiftedNorm

    def __init__(self, config: Config, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__(config, attention, mlp)
        self.input_layernorm, self.post_attention_layernorm = (
            self.norm(config.hidden),
            self.norm(config.hidden),
        )


class FusedLayer(NormedLayer):
    norm = FusedNorm


class MistakenLayer(NormedLayer):
    norm = MistakenNorm


def half(module: nn.Module) -> nn.Module:
    """All in bf16, but for the gains of norms."""
    for name, parameter in module.named_parameters():
        if not name.endswith("layernorm.weight"):
            parameter.data = parameter.data.to(torch.bfloat16)
    for buffer in module.buffers():
        buffer.data = buffer.data.to(torch.bfloat16)
    return module


def baseline() -> Built:
    return half(Engine(layer=NormedLayer)), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return half(Engine(Team.of(groups["tp"]), layer=MistakenLayer)), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return half(Engine(Team.of(groups["tp"]), layer=FusedLayer)), inputs()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS)
