"""Weights from a folder into a module that was built without memory for them."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from magneton.errors import MagnetonError


def read_weights(folder: Path, dtype: torch.dtype, device: str) -> dict[str, Tensor]:
    """Every tensor of every safetensors file in ``folder``, by the name the checkpoint gives it."""
    weights: dict[str, Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        weights.update(load_file(path, device=device))
    return {name: tensor.to(dtype) for name, tensor in weights.items()}


def assign(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Give ``model`` its parameters; one that is missing, left over or misshapen is a MagnetonError."""
    try:
        model.load_state_dict(weights, assign=True)
    except RuntimeError as error:
        problem = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise MagnetonError(
            f"the weights in {folder} are not those of a {type(model).__name__}: {problem}",
            hint="use the transformers system for models that the torch system does not know",
        ) from error
    model.requires_grad_(False)
    model.eval()
