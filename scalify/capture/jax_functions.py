"""Whether a build function returned a function of JAX, found out without importing JAX.

JAX is meant where arguments hold arrays (of NumPy or JAX, or only described) and no tensor of PyTorch.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import cast

import numpy as np
import torch

from scalify.capture.target import parts_of
from scalify.errors import CaptureFailed
from scalify.ir.graph import Graph

MAX_DEPTH = 50


def is_jax(answer: object) -> bool:
    """Whether what a build function returned is JAX's."""
    if not isinstance(answer, tuple):
        return False
    function, *arguments = cast("tuple[object, ...]", answer) or (None,)
    leaves = list(_leaves(arguments))
    if isinstance(function, torch.nn.Module) or any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        return False
    return any(isinstance(leaf, np.ndarray) or _is_of_jax(leaf) for leaf in (function, *leaves))


def _leaves(value: object, depth: int = 0) -> Iterator[object]:
    """What containers hold; where JAX is at work, what its own trees hold too."""
    if "jax" in sys.modules:
        yield from cast("list[object]", sys.modules["jax"].tree_util.tree_leaves(value))
    elif isinstance(value, Mapping) and depth < MAX_DEPTH:
        for part in cast("Mapping[object, object]", value).values():
            yield from _leaves(part, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes) and depth < MAX_DEPTH:
        for part in cast("Sequence[object]", value):
            yield from _leaves(part, depth + 1)
    else:
        yield value


def _is_of_jax(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def of_jax(answer: object, name: str) -> Graph:
    """The graph of a function of JAX."""
    if find_spec("jax") is None:
        raise CaptureFailed("the function takes arrays, and JAX is not installed", hint="pip install jax")
    from scalify.capture.jax import jax_graph

    function, args, kwargs = parts_of(answer)
    if not callable(function):
        raise CaptureFailed("the build function returns no function", hint="return (function, args)")
    return jax_graph(function, args, kwargs, name=name)
