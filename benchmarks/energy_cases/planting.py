"""A small decoder with a place for something wasteful, and much beside it that is hot on both sides alike.

A plant is a function or module from the hidden states [B, T, D] of the middle of the model. ``within`` adds
what it returns to the residual stream; ``beside`` returns it next to the logits. Both give what ``magneton
compare FILE.py:FUNCTION`` runs. The decoys: copies that are needed, a mask that hides more than the future,
a conversion to float64 and back, a sort of logits. They are the same code on both sides.
"""

from collections.abc import Callable
from typing import Protocol, cast

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

LAYERS, HEADS, WIDTH, LENGTH, VOCABULARY = 4, 4, 128, 256, 512
WINDOW = 96  # how far back a position sees
SORTED = 8  # of the last logits

Step = tuple[nn.Module, tuple[Tensor, ...]]


class Plant(Protocol):
    def __call__(self, x: Tensor, /) -> Tensor: ...


def generator(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=generator(seed))


def matrix(rows: int, columns: int, seed: int) -> Tensor:
    """Weights [rows, columns] that keep the scale of what they multiply."""
    return normal(rows, columns, seed=seed) / columns**0.5


class Block(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.norms = nn.Parameter(1 + 0.1 * normal(2, WIDTH, seed=seed))
        self.qkv = nn.Parameter(matrix(3 * WIDTH, WIDTH, seed + 1))
        self.out = nn.Parameter(matrix(WIDTH, WIDTH, seed + 2))
        self.up = nn.Parameter(matrix(4 * WIDTH, WIDTH, seed + 3))
        self.down = nn.Parameter(matrix(WIDTH, 2 * WIDTH, seed + 4))

    def forward(self, x: Tensor, mask: Tensor, angles: Tensor) -> Tensor:
        x = x + self.attend(F.rms_norm(x, (WIDTH,), self.norms[0], 1e-6), mask, angles)
        gate, value = F.linear(F.rms_norm(x, (WIDTH,), self.norms[1], 1e-6), self.up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * value, self.down)

    def attend(self, x: Tensor, mask: Tensor, angles: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in F.linear(x, self.qkv).chunk(3, dim=-1)
        )
        heads = F.scaled_dot_product_attention(rotated(q, angles), rotated(k, angles), v, attn_mask=mask)
        return F.linear(heads.transpose(1, 2).reshape(x.shape), self.out)


def rotated(heads: Tensor, angles: Tensor) -> Tensor:
    one, other = heads.chunk(2, dim=-1)
    return torch.cat(
        (one * angles.cos() - other * angles.sin(), one * angles.sin() + other * angles.cos()), -1
    )


class Host(nn.Module):
    """The decoder. ``plant`` sees what is between the two halves of its blocks."""

    def __init__(self, plant: Plant, *, residual: bool, grad: bool) -> None:
        super().__init__()
        self.residual = residual
        self.embedding = nn.Parameter(normal(VOCABULARY, WIDTH, seed=1))
        self.blocks = nn.ModuleList(Block(10 * number) for number in range(1, LAYERS + 1))
        self.norm = nn.Parameter(1 + 0.1 * normal(WIDTH, seed=2))
        self.head = nn.Parameter(matrix(VOCABULARY, WIDTH, 3))
        self.plant = plant
        self.requires_grad_(grad)

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        behind = places[:, None] - places
        mask = (behind >= 0) & (behind < WINDOW)
        angles = places[:, None] / 10000 ** torch.linspace(0, 1, WIDTH // HEADS // 2)
        x = F.embedding(tokens, self.embedding)
        beside: tuple[Tensor, ...] = ()
        for number, block in enumerate(self.blocks):
            if number == LAYERS // 2:
                planted = self.plant(x)
                x, beside = (x + planted, ()) if self.residual else (x, (planted,))
            x = block(x, mask, angles)
        x = F.layer_norm(x.double(), (WIDTH,)).float() * self.norm
        logits = F.linear(x, self.head)
        best = logits[:, -SORTED:].sort(dim=-1, descending=True).values[..., :SORTED]
        return logits, best.clone(), *beside


def within(plant: Plant) -> Step:
    return Host(plant, residual=True, grad=False), (tokens(),)


def beside(plant: Plant) -> Step:
    return Host(plant, residual=False, grad=False), (tokens(),)


def trained(plant: Plant) -> Step:
    """With parameters that want a gradient, which nobody computes here."""
    return Host(plant, residual=False, grad=True), (tokens(),)


def tokens() -> Tensor:
    return torch.randint(0, VOCABULARY, (1, LENGTH), generator=generator(0))


class Planted(nn.Module):
    """A plant with weights, which are its attributes: ``run(self, x)``."""

    def __init__(self, run: Callable[["Planted", Tensor], Tensor], **weights: Tensor) -> None:
        super().__init__()
        self.run = run
        for name, weight in weights.items():
            self.register_buffer(name, weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)

    def __getattr__(self, name: str) -> Tensor:
        return cast(Tensor, super().__getattr__(name))  # its only entries are buffers
