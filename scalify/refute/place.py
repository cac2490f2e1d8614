"""Inputs on ranks: what every rank of the candidate holds, read out of the baseline's inputs."""

from collections.abc import Mapping, Sequence

import numpy as np

from scalify.ir.graph import NodeId
from scalify.ir.ops.spec import Array
from scalify.layout.maps import IndexMap
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


def _same_on_ranks(index: IndexMap) -> bool:
    return 0 not in index.reads()
