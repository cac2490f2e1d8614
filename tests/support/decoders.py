"""A small decoder that is written in two ways and labels what it computes: for matching recorded programs.

``Decoder(fused=False)`` spells norms and attention out; ``Decoder(fused=True)`` uses one operator for the
attention and projects queries, keys and values at once. Weights depend on the seed and on nothing else.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magneton.match.model import Matching
from magneton.profile.distance import distances
from magneton.profile.model import Profile
from magneton.profile.sketches import stack_sketches
from magneton.record.sketching import sketch_array
from magneton.record.torch.capture import trace_callable

WIDTH, HEADS, VOCABULARY = 64, 4, 257
SAME = 1e-6  # between the sketch of a label and that of the same numbers in the recording

Project = Callable[[Tensor, Tensor], Tensor]
"""What multiplies ``x [.., I]`` by ``w [O, I]``: exactly, or as roughly as a tensor core does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recording and the tensors that the program itself labelled."""

    profile: Profile
    labels: Mapping[str, Tensor]


class Block(nn.Module):
    def __init__(self, *, adapted: bool) -> None:
        super().__init__()
        shapes = dict.fromkeys(("q", "k", "v", "o"), (WIDTH, WIDTH))
        shapes |= {"gate": (2 * WIDTH, WIDTH), "up": (2 * WIDTH, WIDTH), "down": (WIDTH, 2 * WIDTH)}
        self.w = nn.ParameterDict({name: _weight(shape) for name, shape in shapes.items()})
        self.gains = nn.ParameterList([torch.rand(WIDTH) + 0.5 for _ in range(2)])
        self.adapter = nn.ParameterList([_weight((8, WIDTH)), torch.zeros(WIDTH, 8)] if adapted else [])


class Decoder(nn.Module):
    """``same`` repeats one layer; ``tied`` shares the embedding with the head; ``adapted`` adds LoRA to o."""

    def __init__(
        self,
        *,
        fused: bool,
        layers: int = 2,
        same: bool = False,
        tied: bool = False,
        adapted: bool = False,
        project: Project = F.linear,
    ) -> None:
        super().__init__()
        self.fused, self.project = fused, project
        self.labels: dict[str, Tensor] = {}
        state = torch.get_rng_state()
        torch.manual_seed(0)
        self.embedding = _weight((VOCABULARY, WIDTH), scale=1.0)
        blocks = [Block(adapted=False) for _ in range(1 if same else layers)]
        self.head = self.embedding if tied else _weight((VOCABULARY, WIDTH))
        self.gain = nn.Parameter(torch.rand(WIDTH) + 0.5)
        if adapted:
            for block in blocks:
                block.adapter = nn.ParameterList([_weight((8, WIDTH)), torch.zeros(WIDTH, 8)])
        self.blocks = nn.ModuleList(blocks * layers if same else blocks)
        torch.set_rng_state(state)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """ids [B, T], mask [T, T] is added to the scores; logits [B, T, VOCABULARY]."""
        self.labels.clear()
        x = F.embedding(ids, self.embedding)
        for k, block in enumerate(self.blocks):
            assert isinstance(block, Block)
            x = self._block(f"{k}.", block, self._label(f"{k}.x", x), mask)
        return self._label("logits", self.project(self._norm(x, self.gain), self.head))

    def _block(self, at: str, block: Block, x: Tensor, mask: Tensor | None) -> Tensor:
        w = block.w
        y = self._label(at + "normed", self._norm(x, block.gains[0]))
        if self.fused:
            q, k, v = self.project(y, torch.cat([w["q"], w["k"], w["v"]])).chunk(3, -1)
        else:
            q, k, v = (self.project(y, w[name]) for name in ("q", "k", "v"))
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            self._label(at + name, tensor)
        mixed = self._label(at + "mixed", self._attention(q, k, v, mask))
        out = self.project(mixed, w["o"])
        if block.adapter:
            out = out + self.project(self.project(mixed, block.adapter[0]), block.adapter[1])
        x = self._label(at + "attended", x + out)
        z = self._norm(x, block.gains[1])
        gate, up = self._label(at + "gate", self.project(z, w["gate"])), self.project(z, w["up"])
        glu = self._label(at + "glu", F.silu(gate) * self._label(at + "up", up))
        return x + self.project(glu, w["down"])

    def _norm(self, x: Tensor, gain: Tensor) -> Tensor:
        wide = x.float()
        if self.fused:
            return (F.rms_norm(wide, (WIDTH,), None, 1e-6)).to(x.dtype) * gain
        return gain * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    def _attention(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, v))
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
            scores = scores if mask is None else scores + mask
            mixed = torch.softmax(scores.float(), -1).to(q.dtype) @ v
        return mixed.transpose(1, 2).flatten(2)

    def _label(self, name: str, tensor: Tensor) -> Tensor:
        self.labels[name] = tensor
        return tensor


def recorded(model: Decoder, *args: Tensor, with_drift: bool = False) -> Recorded:
    with torch.no_grad():
        profile = trace_callable(model, args, with_drift=with_drift)
    labels = {name: tensor.detach().double() for name, tensor in model.labels.items()}
    return Recorded(profile=profile, labels=labels)


def judged(baseline: Recorded, candidate: Recorded, matching: Matching) -> tuple[set[str], list[str]]:
    """The labels that a pair finds on both sides, and the pairs that take one label for another."""
    where_x = _where(baseline.profile, baseline.labels)
    where_y = _where(candidate.profile, candidate.labels)
    found: set[str] = set()
    wrong: list[str] = []
    for pair in matching.pairs:
        here = {name for name, values in where_x.items() if values & set(pair.baseline)}
        there = {name for name, values in where_y.items() if values & set(pair.candidate)}
        found |= here & there
        if here and there and not here & there and pair.evidence != "composite":
            wrong.append(f"{sorted(here)} with {sorted(there)}")
    return found, wrong


def _where(profile: Profile, labels: Mapping[str, Tensor]) -> dict[str, set[int]]:
    rows = np.arange(len(profile.values))
    found: dict[str, set[int]] = {}
    for name, tensor in labels.items():
        sketch = stack_sketches([sketch_array(tensor.numpy())])
        near = distances(sketch, np.zeros_like(rows), profile.sketches, rows) < SAME
        found[name] = set(rows[near].tolist())
    return found


def _weight(shape: tuple[int, int], *, scale: float | None = None) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape) * (shape[1] ** -0.5 if scale is None else scale))
