"""Presets: model layouts as data (``configs/models/*.toml``), resolved at one scale into a recipe."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from magneton.configs import config_names, config_path, read_config
from magneton.names import unknown

PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRule:
    """One line of a layout: tensors of one shape and spread, repeated over the sizes named in ``name``."""

    name: str
    shape: tuple[str, ...]
    mean: float = 0.0
    std: float | None = None
    fan_in: str | None = None
    gain: float = 1.0

    def __post_init__(self) -> None:
        if (self.std is None) == (self.fan_in is None):
            raise ValueError(f"tensor {self.name!r} needs either std or fan_in")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A layout at every scale, as its file states it."""

    architecture: str
    description: str
    seed: int
    default_scale: str
    scales: Mapping[str, Mapping[str, int]]
    config: Mapping[str, object]
    tensors: tuple[TensorRule, ...]

    def __post_init__(self) -> None:
        if self.default_scale not in self.scales:
            raise ValueError(f"default_scale {self.default_scale!r} is none of the scales")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRecipe:
    name: str
    shape: tuple[int, ...]
    mean: float
    std: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that determines a synthesised model, down to the last bit."""

    seed: int
    config: Mapping[str, object]  # the content of config.json
    tensors: tuple[TensorRecipe, ...]
    vocab_size: int


def preset_names() -> tuple[str, ...]:
    return config_names("models")


def read_preset(name: str) -> Preset:
    return read_config(config_path("models", name), Preset)


def recipe_at(preset: Preset, scale: str | None) -> Recipe:
    """The preset at ``scale``, or at its default one; an unknown scale is a MagnetonError."""
    scale = scale or preset.default_scale
    if scale not in preset.scales:
        raise unknown("scale", scale, preset.scales)
    sizes = preset.scales[scale]
    return Recipe(
        seed=preset.seed,
        config={key: _filled(value, sizes) for key, value in preset.config.items()},
        tensors=tuple(tensor for rule in preset.tensors for tensor in _tensors(rule, sizes)),
        vocab_size=sizes["vocab"],
    )


def _filled(value: object, sizes: Mapping[str, int]) -> object:
    if isinstance(value, str) and value.startswith("$"):
        return sizes[value[1:]]
    return value


def _tensors(rule: TensorRule, sizes: Mapping[str, int]) -> Iterator[TensorRecipe]:
    shape = tuple(_size(text, sizes) for text in rule.shape)
    std = rule.gain / math.sqrt(_size(rule.fan_in, sizes)) if rule.fan_in else rule.std
    assert std is not None  # TensorRule's invariant
    for name in _repeated(rule.name, sizes):
        yield TensorRecipe(name=name, shape=shape, mean=rule.mean, std=std)


def _repeated(name: str, sizes: Mapping[str, int]) -> Iterator[str]:
    found = PLACEHOLDER.search(name)
    if found is None:
        yield name
        return
    for index in range(sizes[found[1]]):
        yield from _repeated(f"{name[: found.start()]}{index}{name[found.end() :]}", sizes)


def _size(product: str, sizes: Mapping[str, int]) -> int:
    """What a product such as "3*hidden" comes to."""
    return math.prod(int(factor) if factor.isdigit() else sizes[factor] for factor in product.split("*"))
