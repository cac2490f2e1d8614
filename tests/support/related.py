"""What relations say, run in NumPy, and tiny pairs of graphs whose inputs are to be related."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import DType, Graph, NodeId
from scalify.ir.mesh import SINGLE, Mesh, coordinates
from scalify.layout.maps import IndexMap, Shape
from scalify.relate.model import InputRelation, Relations

Array = NDArray[Any]


def mesh_of(**axes: int) -> Mesh:
    """A mesh, slowest axis first."""
    return Mesh(axes=tuple(axes.items()))


def taking(
    inputs: Mapping[str, Shape],
    mesh: Mesh = SINGLE,
    *,
    role: str = "parameter",
    dtype: DType = "f32",
    results: Mapping[str, Shape] | None = None,
) -> Graph:
    """A graph that takes inputs of these shapes; without ``results`` it gives each of them back negated."""
    build = GraphBuilder("taking", mesh=mesh)
    taken = [
        build.input(name, dtype, shape, role=role, position=place)
        for place, (name, shape) in enumerate(inputs.items())
    ]
    if results is None:
        for name, value in zip(inputs, taken, strict=True):
            build.output(f"out.{name}", build.add("neg", value))
    for name, shape in (results or {}).items():
        build.output(name, build.constant(0.0, "f32", shape))
    return build.graph()


def cutting(
    shape: Shape, dim: int, windows: Sequence[tuple[int, int]], *, step: int = 1, role: str = "parameter"
) -> Graph:
    """A graph of one input ``w`` that slices it along ``dim`` in windows (start, limit)."""
    build = GraphBuilder("cutting")
    value = build.input("w", "f32", shape, role=role)
    for number, (start, limit) in enumerate(windows):
        build.output(f"part{number}", window(build, value, dim, start, limit, step))
    return build.graph()


def window(build: GraphBuilder, value: NodeId, dim: int, start: int, limit: int, step: int = 1) -> NodeId:
    """A slice along one dimension."""
    shape = build.type(value).shape
    return build.add(
        "slice",
        value,
        starts=tuple(start if d == dim else 0 for d in range(len(shape))),
        limits=tuple(limit if d == dim else size for d, size in enumerate(shape)),
        steps=tuple(step if d == dim else 1 for d in range(len(shape))),
    )


def read_through(index: IndexMap, whole: Array) -> Array:
    """What all ranks hold [ranks, *local] of a baseline's tensor [ranks, *shape]."""
    assert whole.shape == index.codomain
    return whole[places(index)]


def places(index: IndexMap) -> tuple[Array, ...]:
    """For every element on every rank, its place in the baseline's tensor."""
    grid = np.indices(index.domain)
    return tuple(
        np.asarray(
            expr.offset + sum(t.factor * (grid[t.dim] // t.stride % t.size) for t in expr.terms)
            + np.zeros(index.domain, dtype=np.int64)
        )
        for expr in index.coordinates
    )  # fmt: skip


def held(relation: InputRelation, wholes: Mapping[NodeId, Array]) -> Array:
    """What all ranks hold of one input [ranks, *local], given the baseline's tensors."""
    pieces = [read_through(part.index, wholes[part.baseline][None]) for part in relation.parts]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=relation.axis + 1)


def shards(whole: Array, mesh: Mesh, cuts: Mapping[int, Sequence[str]]) -> Array:
    """All ranks' shards [ranks, *local], cut with numpy.split: dimension -> mesh axes, slowest first."""
    found: list[Array] = []
    for rank in range(mesh.size):
        place = coordinates(mesh, rank)
        shard = whole
        for dim, axes in cuts.items():
            for axis in axes:
                shard = np.split(shard, dict(mesh.axes)[axis], axis=dim)[place[axis]]
        found.append(shard)
    return np.stack(found)


def text_of(relations: Relations, name: str = "w") -> str:
    """How an input lies, in words."""
    (found,) = (relation.text for relation in relations.inputs if relation.name == name)
    return found


def numbered(shape: Shape) -> Array:
    """A tensor in which no two elements are equal."""
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
