"""How a value of the candidate stands to one of the baseline's, measured on one draw of inputs."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import NodeId
from scalify.ir.mesh import MeshAxis
from scalify.ir.ops.spec import Array
from scalify.layout.views import Partial
from scalify.localize.standing import Standing
from scalify.localize.values.alike import offset, ratio, same, tolerance
from scalify.localize.values.kept import Kept
from scalify.localize.values.readings import Ranks, Reading, readings

_KINDS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A standing with what only values tell: the ``reading`` that was found, a ``factor`` or a number
    ``added`` that no proof has a word for."""

    standing: Standing
    reading: Reading | None = None
    factor: float | None = None
    added: float | None = None
    moved: bool = False

    @property
    def is_right(self) -> bool:
        """Whether each rank holds what it should, nothing pending."""
        return self.standing.is_clean and self.standing.partial is None


class Values:
    """All values of both programs on one draw, and how they stand to each other, each looked at once."""

    def __init__(self, baseline: Kept, candidate: Kept) -> None:
        self.baseline, self.candidate = baseline, candidate
        self.ranks = Ranks.of(baseline.graph, candidate.graph)
        self._slack: dict[NodeId, float] = {}
        self._known: dict[tuple[NodeId, NodeId], Measured] = {}
        self._right: dict[NodeId, set[NodeId]] = defaultdict(set)

    def measured(self, node: NodeId, counterpart: NodeId) -> Measured:
        """How one value stands to another."""
        key = node, counterpart
        if key not in self._known:
            self._known[key] = self._measure(node, counterpart)
        return self._known[key]

    def of(self, node: NodeId, counterpart: NodeId | None) -> Standing:
        """As a proof would say it."""
        if counterpart is None or node not in self.candidate.values:
            return Standing(counterpart=counterpart)
        return self.measured(node, counterpart).standing

    def has_view(self, node: NodeId) -> bool:
        """Whether a value is known to be the baseline's in any way."""
        return any(found.standing.is_related for (own, _), found in self._known.items() if own == node)

    def scales(self, node: NodeId) -> frozenset[Fraction]:
        """By which factors."""
        found = [each.standing for (own, _), each in self._known.items() if own == node]
        return frozenset(standing.scale for standing in found if standing.is_related)

    def readings(self, node: NodeId, counterpart: NodeId) -> tuple[Reading, ...]:
        """All ways in which the shapes allow to read a value out of the baseline's."""
        given, own = self.baseline.nodes[counterpart], self.candidate.nodes[node]
        return readings(given.type.shape, own.type.shape, self.ranks)

    def partials(self) -> Iterator[tuple[str, tuple[MeshAxis, ...]]]:
        """What may be pending, and over which axes."""
        for kind in _KINDS:
            for axes in self.ranks.sets():
                yield kind, axes

    def slack(self, counterpart: NodeId) -> float:
        """How far values beside the baseline's may be apart."""
        if counterpart not in self._slack:
            self._slack[counterpart] = tolerance(self.baseline.values[counterpart][0])
        return self._slack[counterpart]

    def _measure(self, node: NodeId, counterpart: NodeId) -> Measured:
        own, given = self.candidate.values[node], self.baseline.values[counterpart]
        slack, choices = self.slack(counterpart), self.readings(node, counterpart)
        plain = [each for each in choices if each.is_plain]
        found = (
            _clean(counterpart, own, given, plain, slack)
            or self._pending(counterpart, own, given, plain, slack)
            or self._multiple(counterpart, own, given, plain, slack)
            or _moved(counterpart, own, given, choices, slack)
        )
        return found or Measured(standing=Standing(counterpart=counterpart))

    def _pending(
        self, counterpart: NodeId, own: PerRank, given: PerRank, plain: Sequence[Reading], slack: float
    ) -> Measured | None:
        if own[0].dtype.kind not in "fi" or not plain:
            return None
        for kind, axes in self.partials():
            # Of indices that each rank counts from its own start, the largest are those of the first rank.
            if _is_alike(own, axes) or (kind != "sum" and own[0].dtype.kind == "i"):
                continue
            whole = combined(own, kind, axes, self.ranks)
            partial = Partial(kind, self.ranks.digits(axes))
            for reading in plain:
                expected = reading.of(given)
                if _disjoint(reading, axes):
                    if same(whole, expected, slack * partial.ranks):
                        standing = _standing(counterpart, reading, partial=partial)
                        return Measured(standing=standing, reading=reading)
                    factor = ratio(whole, expected, slack * partial.ranks) if kind == "sum" else None
                    if isinstance(factor, Fraction) and whole[0].size > 1:
                        standing = _standing(counterpart, reading, scale=factor, partial=partial)
                        return Measured(standing=standing, reading=reading)
        return None

    def _multiple(
        self, counterpart: NodeId, own: PerRank, given: PerRank, plain: Sequence[Reading], slack: float
    ) -> Measured | None:
        for reading in plain:
            expected = reading.of(given)
            factor = ratio(own, expected, slack)
            if isinstance(factor, Fraction):
                return Measured(standing=_standing(counterpart, reading, scale=factor), reading=reading)
            if factor is not None:
                return Measured(standing=Standing(counterpart=counterpart), reading=reading, factor=factor)
            added = offset(own, expected, slack)
            if added is not None:
                return Measured(standing=Standing(counterpart=counterpart), reading=reading, added=added)
        return None


def combined(own: PerRank, kind: str, axes: Sequence[MeshAxis], ranks: Ranks) -> PerRank:
    """What each rank would hold after the combination over its group."""
    done: dict[tuple[int, ...], Array] = {}
    found: PerRank = []
    for rank in range(ranks.mesh.size):
        group = members(rank, axes, ranks.mesh.size)
        if group not in done:
            with np.errstate(all="ignore"):
                done[group] = reduce(_KINDS[kind], [own[each] for each in group])
        found.append(done[group])
    return found


def members(rank: int, axes: Sequence[MeshAxis], count: int) -> tuple[int, ...]:
    """The ranks that agree with one on everything but its place along some axes."""
    base = rank - sum(rank // axis.stride % axis.size * axis.stride for axis in axes)
    group = [base]
    for axis in axes:
        group = [each + place * axis.stride for each in group for place in range(axis.size)]
    return tuple(sorted(each for each in group if each < count))


def _is_alike(own: PerRank, axes: Sequence[MeshAxis]) -> bool:
    """Whether the ranks of a group hold the same: a share of a number, not addends that make it up."""
    groups = {members(rank, axes, len(own)) for rank in range(len(own))}
    return all(
        same([own[group[0]]] * (len(group) - 1), [own[each] for each in group[1:]], 0.0) for group in groups
    )


def _clean(
    counterpart: NodeId, own: PerRank, given: PerRank, plain: Sequence[Reading], slack: float
) -> Measured | None:
    for reading in plain:
        if same(own, reading.of(given), slack):
            return Measured(standing=_standing(counterpart, reading), reading=reading)
    return None


def _moved(
    counterpart: NodeId, own: PerRank, given: PerRank, choices: Sequence[Reading], slack: float
) -> Measured | None:
    """The same numbers, elsewhere: through a transposition or a reshape, or in no order that has a name."""
    standing = Standing(counterpart=counterpart, is_related=True)
    for reading in choices:
        if not reading.is_plain and same(own, reading.of(given), slack):
            return Measured(standing=standing, reading=reading, moved=True)
    if _same_numbers(own, given, slack):
        return Measured(standing=standing, moved=True)
    return None


def _same_numbers(own: PerRank, given: PerRank, slack: float) -> bool:
    """Whether ranks together hold the baseline's numbers, each as often."""
    held = sum(each.size for each in own)
    count = sum(each.size for each in given)
    if not count or held % count or own[0].dtype.kind == "c" or count == 1:
        return False
    one = np.sort(np.concatenate([each.ravel() for each in own]))
    other = np.repeat(np.sort(np.concatenate([each.ravel() for each in given])), held // count)
    return same([one], [other], slack)


def _standing(
    counterpart: NodeId, reading: Reading, *, scale: Fraction | None = None, partial: Partial | None = None
) -> Standing:
    standing = Standing(
        counterpart=counterpart,
        is_related=True,
        layout=reading.text,
        splits=reading.layout,
        partial=partial,
    )
    return standing if scale is None else replace(standing, scale=scale)


def _disjoint(reading: Reading, axes: Sequence[MeshAxis]) -> bool:
    used = [axis for split in reading.layout for axis in split.axes]
    return not {(axis.stride, axis.size) for axis in used} & {(axis.stride, axis.size) for axis in axes}
