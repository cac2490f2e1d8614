"""Synthesis: from a recipe to a folder in Hugging Face format. Needs NumPy and safetensors, no framework.

The same recipe gives the same bytes on every machine and with every NumPy: raw bits of PCG64 (whose
stream is fixed, unlike those of the distributions) are added up four 16-bit numbers at a time, which is
exact, and scaled by one multiplication and one addition, which IEEE 754 rounds alike everywhere.
"""

import hashlib
import json
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from magneton.models.preset import Recipe, TensorRecipe
from magneton.models.tokenizer import write_tokenizer

SYNTHESIS_VERSION = 1  # part of the cache key: count up when the same recipe gives other bytes
CHUNK = 1 << 18  # elements drawn at a time, so that the intermediate sums stay in the cache
SUM_MEAN = 4 * 65535 / 2
SUM_STD = math.sqrt(4 * (65536**2 - 1) / 12)


def recipe_hash(recipe: Recipe) -> str:
    """A key under which the synthesised folder is found again."""
    tensors = [(tensor.name, tensor.shape, tensor.mean, tensor.std) for tensor in recipe.tensors]
    everything = [SYNTHESIS_VERSION, recipe.seed, recipe.config, tensors]
    return hashlib.blake2b(json.dumps(everything, sort_keys=True).encode(), digest_size=8).hexdigest()


def synthesise(recipe: Recipe, folder: Path) -> None:
    """Write config.json, model.safetensors and a tokenizer into an existing, empty ``folder``."""
    (folder / "config.json").write_text(json.dumps(recipe.config, indent=2) + "\n")
    write_tokenizer(folder, recipe.vocab_size)
    tensors = {tensor.name: draw(tensor, recipe.seed) for tensor in recipe.tensors}
    try:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:  # of sound tensors: only the disk can have refused them
        raise OSError(f"model.safetensors: {error}") from error


def draw(tensor: TensorRecipe, seed: int) -> NDArray[np.float32]:
    """Nearly normal numbers, each tensor from a stream of its own so that their order does not matter."""
    name_key = int.from_bytes(hashlib.blake2b(tensor.name.encode(), digest_size=8).digest(), "little")
    bits = np.random.PCG64([seed, name_key])
    elements = np.empty(math.prod(tensor.shape), dtype=np.float32)
    scale = np.float32(tensor.std / SUM_STD)
    for start in range(0, elements.size, CHUNK):
        part = elements[start : start + CHUNK]
        words = bits.random_raw(part.size).view(np.uint16).reshape(-1, 4)
        part[:] = words.sum(axis=1, dtype=np.float32)  # at most 4 * 65535 < 2**24: exact
        part -= np.float32(SUM_MEAN)
        part *= scale
        part += np.float32(tensor.mean)
    return elements.reshape(tensor.shape)
