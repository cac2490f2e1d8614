"""Layouts of a tensor on the ranks of a mesh: which ones have the shapes at hand, and their index maps.

A layout is a tuple of splits, none for a tensor that every rank holds whole. In: the shape of the baseline's
tensor and that of one rank. Out: every clean layout with these shapes, in a fixed order; whether one of them
is meant is decided elsewhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import prod

from scalify.ir.mesh import Mesh, MeshAxis
from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, along, identity

MANY_AXES = 8
TOO_MANY_AXES = 64


@dataclass(frozen=True, slots=True)
class Split:
    """Dimension ``dim`` cut in ``blocks`` equal blocks, in the order of the ranks along ``axes``.

    ``axes`` stand slowest first. With fewer blocks than ranks, neighbouring ranks hold the same block.
    """

    dim: int
    blocks: int
    axes: tuple[MeshAxis, ...]

    @property
    def copies(self) -> int:
        """How many neighbouring ranks along the axes hold one block."""
        return prod(axis.size for axis in self.axes) // self.blocks

    def digits(self) -> tuple[tuple[int, int], ...] | None:
        """The digits (stride, size) of the rank's number that make up the block's, fastest first.

        None where blocks do not end where axes do.
        """
        copies = self.copies
        if copies * self.blocks != prod(axis.size for axis in self.axes):
            return None
        found: list[tuple[int, int]] = []
        for axis in reversed(self.axes):
            if copies % axis.size == 0:
                copies //= axis.size
                continue
            if axis.size % copies:
                return None
            found.append((axis.stride * copies, axis.size // copies))
            copies = 1
        return tuple(found)

    @property
    def how(self) -> str:
        """How the dimension is cut, for people."""
        over = " and ".join(axis.name for axis in self.axes)
        if self.copies == 1:
            return f"sharded over {over}"
        return f"in {self.blocks} blocks over {over}, each on {self.copies} consecutive ranks"

    def __str__(self) -> str:
        return f"dimension {self.dim} {self.how}"


Layout = tuple[Split, ...]


def text_of(layout: Layout) -> str:
    """A layout for people."""
    return ", ".join(map(str, layout)) or "replicated"


def layouts(whole: Shape, local: Shape, mesh: Mesh) -> tuple[Layout, ...]:
    """All layouts in which every rank of ``mesh`` holds ``local`` of ``whole``.

    At most two dimensions differ. Blocks held by several neighbours come into question only where no axes
    have as many ranks as there are blocks.
    """
    ratios = _ratios(whole, local)
    if ratios is None:
        return ()
    if not ratios:
        return ((),)
    sets = axes_by_size(mesh)
    if len(ratios) == 1:
        ((dim, blocks),) = ratios
        exact = tuple((Split(dim, blocks, axes),) for axes in sets.get(blocks, ()))
        return exact or tuple(
            (Split(dim, blocks, (axis,)),)
            for axis in mesh.placed()
            if axis.size > blocks and axis.size % blocks == 0
        )
    if len(ratios) == 2:
        (dim, blocks), (other_dim, other_blocks) = ratios
        return tuple(
            (Split(dim, blocks, axes), Split(other_dim, other_blocks, others))
            for axes in sets.get(blocks, ())
            for others in sets.get(other_blocks, ())
            if not set(axes) & set(others)
        )
    return ()


def _ratios(whole: Shape, local: Shape) -> tuple[tuple[int, int], ...] | None:
    """(dimension, how many times it is larger) where they differ; None where that is not a whole number."""
    if len(whole) != len(local):
        return None
    differing = [
        (dim, *sizes) for dim, sizes in enumerate(zip(whole, local, strict=True)) if sizes[0] != sizes[1]
    ]
    if any(part < 1 or full % part for _, full, part in differing):
        return None
    return tuple((dim, full // part) for dim, full, part in differing)


@lru_cache(maxsize=64)
def axes_by_size(mesh: Mesh) -> Mapping[int, tuple[tuple[MeshAxis, ...], ...]]:
    """Sets of axes, in the mesh's order, by the number of ranks along them together."""
    found: dict[int, list[tuple[MeshAxis, ...]]] = {}
    for axes in _sets(tuple(axis for axis in mesh.placed() if axis.size > 1)):
        found.setdefault(prod(axis.size for axis in axes), []).append(axes)
    return {size: tuple(sets) for size, sets in found.items()}


def _sets(axes: tuple[MeshAxis, ...]) -> Iterator[tuple[MeshAxis, ...]]:
    """All sets of few axes; of many, those that are neighbours; of too many, each by itself and all."""
    if len(axes) > TOO_MANY_AXES:
        yield from ((axis,) for axis in axes)
        yield axes
        return
    if len(axes) <= MANY_AXES:
        for count in range(1, len(axes) + 1):
            yield from combinations(axes, count)
        return
    for first in range(len(axes)):
        for last in range(first + 1, len(axes) + 1):
            yield axes[first:last]


def index_of(layout: Layout, local: Shape, whole: Shape, mesh: Mesh, start: Mapping[int, int]) -> IndexMap:
    """What rank by rank the elements of ``local`` are in the one tensor of shape ``whole``.

    ``start`` says per dimension where the window begins that is laid out; 0 where it says nothing.
    """
    splits = {split.dim: split for split in layout}
    coordinates = tuple(
        _coordinate(dim, size, splits.get(dim), start.get(dim, 0)) for dim, size in enumerate(local)
    )
    return IndexMap((mesh.size, *local), (1, *whole), (ZERO, *coordinates))


def _coordinate(dim: int, size: int, split: Split | None, start: int) -> Expr:
    if split is None:
        return along(dim + 1, size, offset=start)
    digits = split.digits()
    if digits is None:
        raise ValueError(f"{split} is not made of digits of the rank")
    terms = [*along(dim + 1, size).terms]
    weight = size
    for stride, count in digits:
        terms.append(Term(0, stride, count, weight))
        weight *= count
    return summed(start, terms)


def rank_by_rank(shape: Shape, ranks: int) -> IndexMap:
    """Every rank of the candidate holds what the same rank of the baseline holds."""
    return identity((ranks, *shape))
