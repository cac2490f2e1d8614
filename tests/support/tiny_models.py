"""Tiny models in Hugging Face format, for tests of whatever loads them."""

from pathlib import Path

from magneton.models.preset import read_preset, recipe_at
from magneton.models.synthesis import synthesise


def tiny_model(name: str, folder: Path) -> Path:
    """A new folder inside ``folder`` that holds the tiny scale of a preset."""
    place = folder / f"{name}-tiny"
    place.mkdir()
    synthesise(recipe_at(read_preset(name), "tiny"), place)
    return place
