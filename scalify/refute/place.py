"""Inputs on ranks: what every rank of the candidate holds, read out of the baseline's inputs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scalify.ir.graph import NodeId
from scalify.ir.ops.spec import Array
from scalify.layout.maps import IndexMap, Shape
from scalify.relate.model import InputRelation


def read(index: IndexMap, array: Array) -> Array:
    """The elements of an array of the map's codomain that each element of its domain reads."""
    return np.broadcast_to(array[places(index)], index.domain)


def places(index: IndexMap) -> tuple[Array, ...]:
    """Where each element reads, by dimension; each as small as it can be to broadcast to the domain."""
    found: list[Array] = []
    for expr in index.coordinates:
        place = np.full((1,) * len(index.domain), expr.offset, dtype=np.int64)
        for dim, stride, size, factor in expr.terms:
            shape = [1] * len(index.domain)
            shape[dim] = index.domain[dim]
            along = np.arange(index.domain[dim]).reshape(shape)
            place = place + factor * (along // stride % size)
        found.append(place)
    return tuple(found)


def on_ranks(relations: Sequence[InputRelation], values: Mapping[NodeId, Array]) -> dict[NodeId, list[Array]]:
    """Every related input of the candidate, as one array per rank.

    ``values`` are the baseline's by node, with its ranks in front. Ranks that hold the same share one array.
    """
    held: dict[NodeId, list[Array]] = {}
    for relation in relations:
        pieces = [read(part.index, values[part.baseline]) for part in relation.parts]
        whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=relation.axis + 1)
        if all(_same_on_ranks(part.index) for part in relation.parts):
            held[relation.candidate] = [np.array(whole[0])] * len(whole)
        else:
            held[relation.candidate] = [np.array(each) for each in whole]
    return held


class Window(NamedTuple):
    """All of a tensor but for one dimension, of which a part."""

    dim: int
    start: int
    stop: int


def slices(shape: Shape, window: Window) -> tuple[slice, ...]:
    """The window as NumPy cuts it."""
    return tuple(
        slice(window.start, window.stop) if dim == window.dim else slice(None) for dim in range(len(shape))
    )


def numbers_in(shape: Shape, window: Window) -> Array:
    """The row-major numbers of a window's elements."""
    return _flat(shape, [_along(shape, dim, window) for dim in range(len(shape))])


def numbers_read(index: IndexMap, rank: int, window: Window) -> Array:
    """The row-major numbers, in the tensor that is read, of what one rank reads in a window of its own.

    The tensor that is read is on one rank: dimension 0 of the map's codomain has one element.
    """
    local = index.domain[1:]
    places: list[Array] = []
    for expr in index.coordinates[1:]:
        place = np.full((1,) * len(local), expr.offset, dtype=np.int64)
        for dim, stride, size, factor in expr.terms:
            along = np.asarray(rank) if dim == 0 else _along(local, dim - 1, window)
            place = place + factor * (along // stride % size)
        places.append(place)
    shape = tuple(
        window.stop - window.start if dim == window.dim else length for dim, length in enumerate(local)
    )
    return np.broadcast_to(_flat(index.codomain[1:], places), shape)


def _along(shape: Shape, dim: int, window: Window) -> Array:
    """The index along one dimension, within the window, to broadcast with others."""
    ends = (window.start, window.stop) if dim == window.dim else (0, shape[dim])
    return np.arange(*ends).reshape(tuple(-1 if each == dim else 1 for each in range(len(shape))))


def _flat(shape: Shape, places: Sequence[Array]) -> Array:
    number = np.asarray(0, dtype=np.int64)
    for size, place in zip(shape, places, strict=True):
        number = number * size + place
    return number


def _same_on_ranks(index: IndexMap) -> bool:
    return 0 not in index.reads()
