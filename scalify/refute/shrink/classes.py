"""Dimensions that must shrink together, and by how much they can.

A dimension is a place in the type of a node. ``join`` says that two shrink by the same factor, ``hold`` that
every length or bound among numbers must stay whole, ``fix`` that one does not shrink.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from scalify.ir.graph import NodeId
from scalify.ir.mesh import RankInt

SHORTEST = 4
"""No dimension becomes shorter than this, unless it is already."""


class Dim(NamedTuple):
    """A dimension of a node: of the baseline (side 0) or of the candidate (side 1)."""

    side: int
    node: NodeId
    dim: int


def numbers_in(value: int | RankInt) -> tuple[int, ...]:
    """The whole numbers that a value on all ranks is made of."""
    return (value.base, *(factor for _, _, factor in value.terms)) if isinstance(value, RankInt) else (value,)


@dataclass(slots=True)
class Classes:
    """Union and find, with the numbers that must remain whole in each class."""

    _parent: dict[Dim, Dim] = field(default_factory=dict[Dim, Dim])
    _numbers: dict[Dim, list[int]] = field(default_factory=dict[Dim, list[int]])
    _lengths: dict[Dim, list[int]] = field(default_factory=dict[Dim, list[int]])
    _fixed: set[Dim] = field(default_factory=set[Dim])

    def add(self, dim: Dim, length: int) -> None:
        """A dimension of some length."""
        self._parent[dim] = dim
        self._numbers[dim] = [length]
        self._lengths[dim] = [length]

    def root(self, dim: Dim) -> Dim:
        """The dimension that stands for all that shrink together with one."""
        path = [dim]
        while self._parent[path[-1]] != path[-1]:
            path.append(self._parent[path[-1]])
        for each in path:
            self._parent[each] = path[-1]
        return path[-1]

    def join(self, one: Dim, other: Dim) -> None:
        """Both shrink by the same factor."""
        root, joined = self.root(one), self.root(other)
        if root == joined:
            return
        if len(self._numbers[root]) < len(self._numbers[joined]):
            root, joined = joined, root
        self._parent[joined] = root
        self._numbers[root] += self._numbers.pop(joined)
        self._lengths[root] += self._lengths.pop(joined)
        if joined in self._fixed:
            self._fixed.add(root)

    def hold(self, dim: Dim, numbers: Iterable[int | RankInt]) -> None:
        """Bounds along a dimension, which must remain whole numbers."""
        for number in numbers:
            parts = numbers_in(number)
            self._numbers[self.root(dim)].extend(abs(part) for part in parts if part)

    def fix(self, dim: Dim) -> None:
        """It keeps its length."""
        self._fixed.add(self.root(dim))

    def factors(self) -> dict[Dim, int]:
        """By what each dimension's length is divided: a power of two."""
        by_root = {root: self._factor(root) for root in self._numbers}
        return {dim: by_root[self.root(dim)] for dim in self._parent}

    def _factor(self, root: Dim) -> int:
        shortest, numbers = min(self._lengths[root]), self._numbers[root]
        if root in self._fixed:
            return 1
        factor = 1
        while shortest // (2 * factor) >= SHORTEST and all(each % (2 * factor) == 0 for each in numbers):
            factor *= 2
        return factor
