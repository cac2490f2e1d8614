"""How the baseline itself cuts a dimension of an input into parts: what tells fused weights from plain ones.

In: the baseline's graph. Out: for a dimension of an input, the slices that are taken of it, followed through
point-wise ops, transposes, broadcasts, contractions in which it stays, and reshapes that keep it or split it.
The candidate's slices are never looked at: a wrong slice there would choose the layout that makes it right.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import prod
from typing import NamedTuple

from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.mesh import RankInt
from scalify.ir.ops.elementwise import ELEMENTWISE

POINTWISE = frozenset(spec.name for spec in ELEMENTWISE)
MANY_PARTS = 4096


class Cut(NamedTuple):
    """A slice of a dimension: ``size`` elements from ``start``, each ``step`` after the one before."""

    start: int
    size: int
    step: int


class Cuts:
    """The slices of every dimension of a graph's values, found when asked for and kept."""

    def __init__(self, graph: Graph) -> None:
        self._nodes = graph.by_id()
        self._users: dict[NodeId, list[Node]] = {}
        for node in graph.nodes:
            for operand in dict.fromkeys(node.operands):
                self._users.setdefault(operand, []).append(node)
        self._known: dict[tuple[NodeId, int], frozenset[Cut]] = {}

    def of(self, value: NodeId, dim: int) -> tuple[Cut, ...]:
        """The slices taken of ``dim`` of a value, however far down; none where it is only used whole."""
        todo = [(value, dim)]
        begun: dict[tuple[NodeId, int], list[_Step]] = {}
        while todo:
            key = todo[-1]
            if key in self._known:
                todo.pop()
            elif key in begun:
                self._known[key] = self._joined(begun[key])
            else:
                begun[key] = steps = list(self._steps(*key))
                todo.extend(step.follow for step in steps if step.follow)
        return tuple(sorted(self._known[value, dim]))

    def _joined(self, steps: Iterable["_Step"]) -> frozenset[Cut]:
        sets = {step.through(self._known[step.follow] if step.follow else frozenset()) for step in steps}
        if len(sets) == 1:
            return sets.pop()
        joined = frozenset[Cut]().union(*sets)
        # So many slices are no fused weight, and the first of them show it.
        return joined if len(joined) <= MANY_PARTS else frozenset(sorted(joined)[:MANY_PARTS])

    def _steps(self, value: NodeId, dim: int) -> Iterator["_Step"]:
        for user in self._users.get(value, ()):
            for position, operand in enumerate(user.operands):
                passage = self._passage(user, position, dim) if operand == value else None
                if passage is not None:
                    target, part, unit = passage
                    follow = None if target is None or user.id not in self._users else (user.id, target)
                    yield _Step(follow, part, unit)

    def _passage(self, user: Node, position: int, dim: int) -> "_Passage | None":
        shape = self._nodes[user.operands[position]].type.shape
        if user.op == "slice":
            return _sliced(user, dim, shape)
        if user.op == "reshape":
            return _reshaped(user, dim, shape)
        target = _kept(user, position, dim, shape)
        return None if target is None else (target, None, 1)


_Passage = tuple[int | None, Cut | None, int]
"""Where a dimension goes on in a result, which part of it, and how many of its elements each one is there."""


class _Step(NamedTuple):
    """One use of a value: where the dimension goes on to further uses, and how cuts found there read here."""

    follow: tuple[NodeId, int] | None
    cut: Cut | None
    unit: int

    def through(self, found: frozenset[Cut]) -> frozenset[Cut]:
        start = 0 if self.cut is None else self.cut.start
        if found and (self.unit > 1 or start):
            found = frozenset(_moved(cut, self.unit, start) for cut in found)
        if self.cut is None:
            return found
        return found or frozenset((self.cut,))


def _moved(cut: Cut, unit: int, start: int) -> Cut:
    # Every other run of elements is no plain slice; a step of 0 says so.
    step = cut.step if cut.step == 1 or unit == 1 else 0
    return Cut(cut.start * unit + start, cut.size * unit, step)


def _sliced(user: Node, dim: int, shape: tuple[int, ...]) -> _Passage | None:
    starts, steps = user.attrs["starts"], user.attrs["steps"]
    assert isinstance(starts, tuple) and isinstance(steps, tuple)
    start, step, size = starts[dim], steps[dim], user.type.shape[dim]
    if isinstance(start, RankInt) or not isinstance(start, int) or not isinstance(step, int):
        return None
    if size == shape[dim]:
        return dim, None, 1
    return dim if step == 1 else None, Cut(start, size, step), 1


def _reshaped(user: Node, dim: int, shape: tuple[int, ...]) -> _Passage | None:
    """A dimension that is kept, or the outermost of those it is split into; None where others join it."""
    target = user.type.shape
    before, after, passed = prod(shape[:dim]), prod(shape[dim + 1 :]), 1
    if not before or not after:
        return None
    for position, size in enumerate(target):
        if passed == before and size > 1:
            inner = prod(target[position + 1 :])
            if inner % after or size * (inner // after) != shape[dim]:
                return None
            return position, None, inner // after
        passed *= size
    return None


def _kept(user: Node, position: int, dim: int, shape: tuple[int, ...]) -> int | None:
    """The dimension of the result along which the operand's ``dim`` runs, where it does."""
    target = user.type.shape
    if user.op in POINTWISE:
        moved = dim + len(target) - len(shape)
        return moved if target[moved] == shape[dim] else None
    if user.op == "transpose":
        perm = user.attrs["perm"]
        assert isinstance(perm, tuple)
        return perm.index(dim)
    if user.op == "broadcast":
        dims = user.attrs["dims"]
        assert isinstance(dims, tuple)
        moved = dims[dim]
        return moved if isinstance(moved, int) and target[moved] == shape[dim] else None
    if user.op == "einsum":
        operands, result = str(user.attrs["spec"]).split("->")
        letter = operands.split(",")[position][dim]
        return result.index(letter) if letter in result else None
    if user.op == "conv" and position == 1 and dim == 0:
        return 1
    return None


def tiling(cuts: tuple[Cut, ...], size: int) -> tuple[int, ...] | None:
    """The sizes of the parts, where the slices lie side by side and leave no gap."""
    if not cuts or cuts[0].start != 0 or any(cut.step != 1 for cut in cuts):
        return None
    if any(one.start + one.size != other.start for one, other in pairwise(cuts)):
        return None
    return tuple(cut.size for cut in cuts) if cuts[-1].start + cuts[-1].size == size else None


def stride_of(cuts: tuple[Cut, ...], size: int) -> int | None:
    """``k`` where the slices are every k-th element from 0, from 1, and so on up to k - 1."""
    step = cuts[0].step if cuts else 0
    if step < 2 or size % step:
        return None
    return step if cuts == tuple(Cut(start, size // step, step) for start in range(step)) else None


def shown(cuts: tuple[Cut, ...]) -> str:
    """Some slices for people."""
    return ", ".join(f"{cut.start}:{cut.start + cut.size * (cut.step or 1)}" for cut in cuts[:4])
