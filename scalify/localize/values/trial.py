"""Trials: the candidate run on with the right value in the place of a wrong one. Does it mend the outputs?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Node, NodeId
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.spec import Array
from scalify.localize.values.alike import same
from scalify.localize.values.kept import Outputs
from scalify.localize.values.readings import Reading
from scalify.localize.values.standings import Values, members
from scalify.refute.place import read
from scalify.relate.model import OutputRelation

MOST_PLAIN = 6
MOST_MOVED = 6

WHOLE, PENDING, PASSED = "whole", "pending", "passed"


@dataclass(frozen=True, slots=True)
class Right:
    """What a node might have to hold.

    That is the baseline's value as it lies on ranks, the same still to be combined, or what came in.
    """

    kind: str
    value: PerRank
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outputs that a trial made right, and how many that were right it spoilt."""

    mended: frozenset[str]
    spoilt: int

    @property
    def is_good(self) -> bool:
        """Whether something is right that was wrong, and nothing the other way round."""
        return bool(self.mended) and not self.spoilt


class Trials:
    """Trials on one draw of inputs."""

    def __init__(self, values: Values, relations: Sequence[OutputRelation]) -> None:
        self.values = values
        self._relations = [each for each in relations if each.choices]
        before = values.candidate.outputs()
        self.wrong = frozenset(
            relation.candidate for relation in self._relations if not self._is_right(relation, before)
        )

        graph = values.candidate.graph
        places = {node.id: place for place, node in enumerate(graph.nodes)}
        ends = sorted((o for o in graph.outputs if o.name in self.wrong), key=lambda o: places[o.value])
        self._in_order = [output.name for output in ends]
        self._reached: dict[NodeId, frozenset[str]] = {}
        for output in ends:
            self._reached[output.value] = self._reached.get(output.value, frozenset()) | {output.name}
        for node in reversed(graph.nodes):
            reached = self._reached.get(node.id)
            for operand in node.operands if reached else ():
                self._reached[operand] = self._reached.get(operand, frozenset()) | (reached or frozenset())

    def outcome(self, changed: Mapping[NodeId, PerRank]) -> Outcome:
        """What becomes of the outputs with other values for some nodes."""
        nearest = self._nearest(changed)
        if nearest is not None:
            first = self.values.candidate.with_values(changed, nearest)
            if not self._judged(first).mended:
                return Outcome(frozenset(), 0)
        return self._judged(self.values.candidate.with_values(changed))

    def edited(self, node: Node) -> Outcome:
        """What becomes of the outputs with another node in the place of one."""
        nearest = self._nearest((node.id,))
        if nearest is not None and not self._judged(self.values.candidate.with_node(node, nearest)).mended:
            return Outcome(frozenset(), 0)
        return self._judged(self.values.candidate.with_node(node))

    def reaches_all(self, node: NodeId) -> bool:
        """Whether all wrong outputs depend on a node, as they do on the cause if there is but one."""
        return len(self._reached.get(node, ())) == len(self.wrong)

    def _nearest(self, nodes: Iterable[NodeId]) -> str | None:
        """Of several wrong outputs the first one that depends on some nodes: it costs the least to see."""
        reached = {name for node in nodes for name in self._reached.get(node, ())}
        return next((name for name in self._in_order if name in reached), None) if len(reached) > 1 else None

    def _judged(self, outputs: Outputs | None) -> Outcome:
        if outputs is None:
            return Outcome(frozenset(), 0)
        seen = [relation for relation in self._relations if relation.candidate in outputs]
        right = {relation.candidate for relation in seen if self._is_right(relation, outputs)}
        spoilt = {relation.candidate for relation in seen} - right - self.wrong
        return Outcome(frozenset(right & self.wrong), len(spoilt))

    def rights(self, node: Node, counterpart: NodeId | None, *, is_own: bool) -> Iterator[Right]:
        """What a node might have to hold, most likely first.

        Where no counterpart is its own it may be one too many: what came in should have passed.
        """
        if counterpart is not None and counterpart in self.values.baseline.values:
            yield from self._of_baseline(node, counterpart)
        for operand in () if is_own else dict.fromkeys(node.operands):
            passed = self.values.candidate.nodes[operand]
            alike = KIND_OF[passed.type.dtype] == KIND_OF[node.type.dtype]
            if operand in self.values.candidate.values and alike and passed.type.shape == node.type.shape:
                yield Right(PASSED, self.values.candidate.values[operand])

    def _of_baseline(self, node: Node, counterpart: NodeId) -> Iterator[Right]:
        given = self.values.baseline.values[counterpart]
        if given[0].dtype.kind != _kind(node):
            return
        choices = self.values.readings(node.id, counterpart)
        plain = [each for each in choices if each.is_plain]
        for reading in plain[:MOST_PLAIN]:
            yield Right(WHOLE, reading.of(given), reading)
        if _kind(node) in "fi" and not self.values.ranks.unrolled:
            for reading in plain[:MOST_PLAIN]:
                yield from self._pending(reading, reading.of(given))
        for reading in [each for each in choices if not each.is_plain][:MOST_MOVED]:
            yield Right(WHOLE, reading.of(given), reading)

    def _pending(self, reading: Reading, whole: PerRank) -> Iterator[Right]:
        """Some of it on each rank of a group: a sum that is still to be taken."""
        used = {(axis.stride, axis.size) for split in reading.layout for axis in split.axes}
        for axes in self.values.ranks.sets():
            if used & {(axis.stride, axis.size) for axis in axes}:
                continue
            count = self.values.ranks.mesh.size
            groups = [members(rank, axes, count) for rank in range(count)]
            value = [
                _share(each, groups[rank].index(rank), len(groups[rank])) for rank, each in enumerate(whole)
            ]
            yield Right(PENDING, value, reading)

    def _is_right(self, relation: OutputRelation, outputs: Outputs) -> bool:
        given, own = self.values.baseline.outputs().get(relation.baseline), outputs.get(relation.candidate)
        if given is None or own is None:
            return False
        stacked = np.stack(given)
        slack = 10 * self.values.slack(self._output(relation))
        return any(same(own, list(read(index, stacked)), slack) for _, index in relation.choices)

    def _output(self, relation: OutputRelation) -> NodeId:
        outputs = self.values.baseline.graph.outputs
        return next(output.value for output in outputs if output.name == relation.baseline)


def _share(whole: Array, place: int, count: int) -> Array:
    """A part of a sum: unlike ones, so that only code that takes the sum gets the whole back."""
    if whole.dtype.kind != "f":
        return whole if place == 0 else np.zeros_like(whole)
    return whole * (2 * (place + 1) / (count * (count + 1)))


def _kind(node: Node) -> str:
    return {"float": "f", "int": "i", "bool": "b", "complex": "c"}[KIND_OF[node.type.dtype]]
