"""Pairs of realistic model code, written before anybody ran the matcher on them and without a look at it."""

from match_pairs import (
    attention,
    batches,
    caches,
    decoders,
    experts,
    images,
    norms,
    parallel,
    positions,
    precision,
    training,
    vocabulary,
)
from match_pairs.convention import collect

__all__ = ["PAIRS", "collect"]

MODULES = (
    attention,
    positions,
    batches,
    caches,
    experts,
    norms,
    vocabulary,
    images,
    precision,
    training,
    parallel,
    decoders,
)
PAIRS = {name: build for module in MODULES for name, build in module.PAIRS.items()}
