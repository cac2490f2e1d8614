"""The ranks that run one program, and integers that differ from rank to rank.

Ranks are numbered 0 .. size-1, row-major over the axes of the mesh: the last axis varies fastest, as in
``torch.distributed.device_mesh`` and in XLA's iota tile assignments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshAxis:
    """One axis: rank // ``stride`` % ``size`` is a rank's coordinate on it."""

    name: str
    size: int
    stride: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Named axes, slowest first. No axes: one device."""

    axes: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if any(size < 1 for _, size in self.axes):
            raise ValueError(f"a mesh axis has at least one rank: {self.axes}")
        if len({name for name, _ in self.axes}) != len(self.axes):
            raise ValueError(f"mesh axes have names of their own: {self.axes}")

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return prod(size for _, size in self.axes)

    def placed(self) -> tuple[MeshAxis, ...]:
        """The axes with their strides in the rank's number."""
        placed: list[MeshAxis] = []
        stride = 1
        for name, size in reversed(self.axes):
            placed.append(MeshAxis(name=name, size=size, stride=stride))
            stride *= size
        return tuple(reversed(placed))


SINGLE = Mesh()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankInt:
    """An integer attribute that is affine in digits of the rank's number.

    Its value on ``rank`` is ``base + sum(coefficient * (rank // stride % size))`` over ``terms``. Plain
    ``int`` is used wherever all ranks agree; a RankInt without terms is not made.
    """

    base: int
    terms: tuple[tuple[int, int, int], ...]  # (stride, size, coefficient)

    def __post_init__(self) -> None:
        if not self.terms or any(stride < 1 or size < 2 or not factor for stride, size, factor in self.terms):
            raise ValueError(f"not a rank-dependent integer: {self}")

    def at(self, rank: int) -> int:
        """The value on one rank."""
        return self.base + sum(factor * (rank // stride % size) for stride, size, factor in self.terms)


def on_rank(value: int | RankInt, rank: int) -> int:
    """An attribute's value on one rank."""
    return value.at(rank) if isinstance(value, RankInt) else value


Groups = tuple[tuple[int, ...], ...]


def groups_along(mesh: Mesh, names: tuple[str, ...]) -> Groups:
    """Replica groups of a collective over the named axes: ranks that agree on all other axes.

    Within a group, ranks are ordered by the named axes in the mesh's own order.
    """
    chosen = [axis for axis in mesh.placed() if axis.name in names]
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank in range(mesh.size):
        rest = tuple(rank // axis.stride % axis.size for axis in mesh.placed() if axis not in chosen)
        groups.setdefault(rest, []).append(rank)
    return tuple(tuple(group) for group in groups.values())


def coordinates(mesh: Mesh, rank: int) -> Mapping[str, int]:
    """A rank's coordinate on every axis."""
    return {axis.name: rank // axis.stride % axis.size for axis in mesh.placed()}
