"""Tensors that an engine's objects hold, by the names of the attributes that hold them."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

PARTS = ("gpu", "cpu")  # of a buffer that has a twin on the host


def named_tensors(owner: Any, *, parts: tuple[str, ...] = PARTS) -> Mapping[str, Tensor]:
    """The tensors among an object's attributes, and those inside its buffers with a twin on the host."""
    named: dict[str, Tensor] = {}
    for name, value in vars(owner).items():
        if isinstance(value, Tensor):
            named[name] = value
            continue
        for part in parts:
            twin = getattr(value, "__dict__", {}).get(part)
            if isinstance(twin, Tensor):
                named[f"{name}.{part}"] = twin
    return named
