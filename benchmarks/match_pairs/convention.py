"""What a file of benchmark pairs is: two PyTorch programs that compute the same thing in two ways, labelled.

Such a file exposes ``PAIRS``, from a name to a builder of a ``Pair``, and ``collect``. Programs call ``tag``
at their semantic points, and the labels are the ground truth: a name tagged on both sides is one value up to
layout, ``parts[whole]`` names the labels of which ``whole`` is the concatenation, and no other two labels are
equal.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Generator as Yielding
from contextlib import contextmanager
from math import sqrt
from typing import NotRequired, TypedDict

import torch
from torch import Generator, Tensor, nn

MINUS_INFINITY = float("-inf")
_collecting: list[dict[str, Tensor]] = []


class Pair(TypedDict):
    """A is the baseline, B the candidate; the keys are those of the files of pairs this one follows."""

    A: nn.Module
    B: nn.Module
    args: Sequence[Tensor]
    argsB: NotRequired[Sequence[Tensor]]
    parts: NotRequired[Mapping[str, Sequence[str]]]
    tol: NotRequired[float]


class Pairs(dict[str, Callable[[], Pair]]):
    """The builders of one file; ``add`` is the decorator which enters one under its own name."""

    def add(self, build: Callable[[], Pair]) -> Callable[[], Pair]:
        self[build.__name__] = build
        return build


def tag(name: str, tensor: Tensor) -> Tensor:
    """Label a tensor. The identity, so that any tracer can run the programs untouched.

    A recomputation may tag again what it computes again; anything else under a used name is a mistake.
    """
    if _collecting:
        labels = _collecting[-1]
        if name not in labels:
            labels[name] = tensor.detach().clone()
        elif not torch.equal(labels[name], tensor):
            raise ValueError(f"{name!r} labels two different tensors")
    return tensor


@contextmanager
def collect() -> Yielding[dict[str, Tensor]]:
    """Within the block, ``tag`` copies what it labels into the dictionary this yields."""
    labels: dict[str, Tensor] = {}
    _collecting.append(labels)
    try:
        yield labels
    finally:
        _collecting.pop()


class Weights(nn.Module):
    """Frozen tensors by name, and those of each layer."""

    def __init__(self, named: Mapping[str, Tensor], layers: Sequence[Mapping[str, Tensor]] = ()) -> None:
        super().__init__()
        for name, value in named.items():
            self.register_parameter(name, nn.Parameter(value, requires_grad=False))
        for index, layer in enumerate(layers):
            self.add_module(str(index), Weights(layer))

    @property
    def layers(self) -> tuple["Weights", ...]:
        return tuple(child for child in self.children() if isinstance(child, Weights))

    def __getattr__(self, name: str) -> Tensor:
        value = super().__getattr__(name)
        if not isinstance(value, Tensor):
            raise AttributeError(f"{name!r} is no weight")
        return value


class Program(Weights):
    """A function of weights and inputs, as a module."""

    def __init__(
        self,
        run: Callable[..., Tensor],
        named: Mapping[str, Tensor],
        layers: Sequence[Mapping[str, Tensor]] = (),
    ) -> None:
        super().__init__(named, layers)
        self._run = run

    def forward(self, *inputs: Tensor) -> Tensor:
        return self._run(self, *inputs)


def seeded(seed: int) -> Generator:
    return Generator().manual_seed(seed)


def normal(generator: Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator)


def matrix(generator: Generator, *shape: int) -> Tensor:
    """A weight that keeps the variance of what it multiplies; the last dimension is contracted."""
    return normal(generator, *shape) / sqrt(shape[-1])


def matrices(generator: Generator, names: str, *shape: int) -> dict[str, Tensor]:
    """One ``matrix`` for each of the names, drawn in their order."""
    return {name: matrix(generator, *shape) for name in names.split()}


def gain(generator: Generator, width: int) -> Tensor:
    """The weight of a norm, far from all ones."""
    return torch.rand(width, generator=generator) + 0.5


def offset(generator: Generator, width: int) -> Tensor:
    """A bias, far from all zeros."""
    return normal(generator, width) * 0.3


def norm_weights(generator: Generator, *names: str, width: int) -> dict[str, Tensor]:
    """For each name NAME, a gain ``NAME_gain`` and an offset ``NAME_offset``."""
    weights: dict[str, Tensor] = {}
    for name in names:
        weights |= {f"{name}_gain": gain(generator, width), f"{name}_offset": offset(generator, width)}
    return weights


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, T, D] -> [B, H, T, D / H]"""
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """[B, H, T, D] -> [B, T, H * D]"""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def causal_mask(length: int, total: int | None = None) -> Tensor:
    """Additive: -inf where one of the last ``length`` of ``total`` positions would look ahead."""
    total = length if total is None else total
    return torch.full((length, total), MINUS_INFINITY).triu(total - length + 1)


def rms_norm_by_hand(x: Tensor, weight: Tensor | None, epsilon: float = 1e-6) -> Tensor:
    scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)
    return scaled if weight is None else weight * scaled


def layer_norm_by_hand(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + epsilon) * weight + bias
