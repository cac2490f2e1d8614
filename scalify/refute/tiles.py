"""Weights too large to be held, multiplied piece by piece.

In: a graph, and inputs of which any piece can be made alone. Out: the graph without the large inputs that
only products and look-ups read, and what computes these nodes instead: each makes a piece of the weight, uses
it and forgets it. Between a weight and its product there may be transposes and casts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import cast

import numpy as np

from scalify.ir.evaluate import Instead, PerRank
from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.meaning.indexing import check_range
from scalify.ir.ops.spec import Array
from scalify.refute.pair import Piece
from scalify.refute.place import Window

LARGE = 1 << 24
"""Inputs of more elements than this are not held."""

PIECE_ELEMENTS = 1 << 22
"""Elements of one piece, about."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A large input as a node reads it: dimension ``d`` of the operand is ``dims[d]`` of the input."""

    name: str
    shape: tuple[int, ...]
    dims: tuple[int, ...]

    def cut(self) -> tuple[int, int]:
        """The input's dimension to cut along, and how far at a time."""
        dim = max(range(len(self.shape)), key=lambda each: self.shape[each])
        return dim, max(PIECE_ELEMENTS * self.shape[dim] // prod(self.shape), 1)


def in_pieces(graph: Graph, piece: Piece, *, large: int = LARGE) -> tuple[Graph, Mapping[NodeId, Instead]]:
    """The graph that holds no large weight, and how the nodes that read one are computed."""
    weights = weights_of(graph, large)
    readers = {node.id: node for node in graph.nodes if _weight_of(node, weights) is not None}
    instead: dict[NodeId, Instead] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.id in weights:
            continue
        if node.id in readers:
            place = cast(int, _weight_of(node, weights))
            weight = weights[node.operands[place]]
            compute = _product if node.op == "einsum" else _look_up
            instead[node.id] = compute(node, place, weight, piece, graph.mesh.size)
            node = replace(node, operands=(*node.operands[:place], *node.operands[place + 1 :]))
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes)), instead


def weights_of(graph: Graph, large: int = LARGE) -> dict[NodeId, Weight]:
    """Large inputs, and what transposes and casts make of them, if only products and look-ups read it."""
    found: dict[NodeId, Weight] = {}
    for node in graph.nodes:
        if node.op == "input" and prod(node.type.shape) > large and KIND_OF[node.type.dtype] == "float":
            whole = tuple(range(len(node.type.shape)))
            found[node.id] = Weight(str(node.attrs["name"]), node.type.shape, whole)
        elif node.op in ("transpose", "cast") and node.operands[0] in found:
            source = found[node.operands[0]]
            perm = cast("tuple[int, ...]", node.attrs.get("perm", tuple(range(len(source.dims)))))
            if KIND_OF[node.type.dtype] == "float":
                found[node.id] = replace(source, dims=tuple(source.dims[dim] for dim in perm))
    return {each: weight for each, weight in found.items() if each not in _held(graph, found)}


def _held(graph: Graph, found: Mapping[NodeId, Weight]) -> set[NodeId]:
    """Those that something else reads too, with all that they are made of: these are held after all."""
    held = {output.value for output in graph.outputs}
    for node in reversed(graph.nodes):
        own = [operand for operand in node.operands if operand in found]
        follows = node.id in found and node.id not in held
        reads = node.op == "einsum" and len(own) == 1 and _is_plain(node)
        looks_up = node.op == "take" and own == [node.operands[0]] and node.attrs["axis"] == 0
        if not (follows or reads or (looks_up and own[0] != node.operands[1])):
            held.update(own)
    return held & set(found)


def _is_plain(node: Node) -> bool:
    """Whether each operand names each of its dimensions by a letter of its own."""
    left = str(node.attrs["spec"]).partition("->")[0].split(",")
    return all(len(set(letters)) == len(letters) for letters in left)


def _weight_of(node: Node, weights: Mapping[NodeId, Weight]) -> int | None:
    if node.op not in ("einsum", "take"):
        return None
    return next((place for place, operand in enumerate(node.operands) if operand in weights), None)


def _product(node: Node, place: int, weight: Weight, piece: Piece, ranks: int) -> Instead:
    left, _, right = str(node.attrs["spec"]).partition("->")
    letters = left.split(",")
    dim, step = weight.cut()
    letter = letters[place][weight.dims.index(dim)]
    others = [named for position, named in enumerate(letters) if position != place]

    def on_rank(rank: int, operands: Sequence[Array]) -> Array:
        results: list[Array] = []
        for start in range(0, weight.shape[dim], step):
            stop = min(start + step, weight.shape[dim])
            own = piece(weight.name, rank, Window(dim, start, stop)).transpose(weight.dims)
            given = [
                _window(array, named, letter, start, stop)
                for array, named in zip(operands, others, strict=True)
            ]
            given.insert(place, own)
            results.append(np.einsum(str(node.attrs["spec"]), *given, optimize=True))
        if letter in right:
            return np.concatenate(results, axis=right.index(letter))
        return np.asarray(sum(results[1:], results[0]))

    def compute(operands: Sequence[PerRank]) -> PerRank:
        return [on_rank(rank, [operand[rank] for operand in operands]) for rank in range(ranks)]

    return compute


def _window(array: Array, named: str, letter: str, start: int, stop: int) -> Array:
    if letter not in named:
        return array
    return array[(slice(None),) * named.index(letter) + (slice(start, stop),)]


def _look_up(node: Node, place: int, weight: Weight, piece: Piece, ranks: int) -> Instead:
    """Rows of a table, by what is asked for."""
    del place
    dim = weight.dims[0]

    def on_rank(rank: int, indices: Array) -> Array:
        check_range("take", indices, weight.shape[dim])
        asked, where = np.unique(indices, return_inverse=True)
        rows = (piece(weight.name, rank, Window(dim, int(row), int(row) + 1)) for row in asked)
        table = np.concatenate([row.transpose(weight.dims) for row in rows], axis=0)
        return table[where.reshape(indices.shape)]

    def compute(operands: Sequence[PerRank]) -> PerRank:
        return [on_rank(rank, operands[0][rank]) for rank in range(ranks)]

    return compute
