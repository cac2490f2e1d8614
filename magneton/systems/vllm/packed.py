"""Weights that vLLM has packed for its kernels and let go of, read again from the model's folder."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn


def packed_weights(model: nn.Module, folder: Path, dtype: torch.dtype) -> Mapping[str, Tensor]:
    """For each module whose weight is gone: what it was, by the module's path.

    A merged module (``qkv_proj``) gets the rows of its parts in order, as the model's own table names them.
    """
    parts: Mapping[str, Sequence[str]] = getattr(model, "packed_modules_mapping", {})
    files = _files(folder)
    found: dict[str, Tensor] = {}
    for path, module in model.named_modules():
        weight: Any = getattr(module, "weight", None)
        if isinstance(weight, Tensor) and weight.numel() == 0:
            leaf = path.rpartition(".")[2]
            names = [f"{path.removesuffix(leaf)}{part}.weight" for part in parts.get(leaf, (leaf,))]
            if all(name in files for name in names):
                found[path] = torch.cat([_read(files[name], name) for name in names]).to(dtype)
    return found


def _files(folder: Path) -> Mapping[str, Path]:
    return {name: path for path in sorted(folder.glob("*.safetensors")) for name in _names(path)}


def _names(path: Path) -> Iterator[str]:
    with safe_open(path, framework="pt") as tensors:
        yield from tensors.keys()


def _read(path: Path, name: str) -> Tensor:
    with safe_open(path, framework="pt") as tensors:
        return tensors.get_tensor(name)
