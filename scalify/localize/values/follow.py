"""Which node of the baseline each node of the candidate stands for, by source and by what it holds.

What is computed alike has the same values, however it is written: so a rewritten program is followed by
values, and what is left, for it holds something else, by its place among nodes that are known.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.ops.spec import Array
from scalify.localize.align import LEAVES, MOVEMENTS, POINTWISE, Alignment, align, bag, is_collective, leaf_or
from scalify.localize.values.standings import Values, combined
from scalify.relate.model import Relations

MOST_LIKE = 8
"""So many values of the baseline with the same figures are compared number by number."""
ALIKE = 1e-7
_REDUCTIONS = frozenset(
    {"reduce", "softmax", "log_softmax", "logsumexp", "argmax", "argmin", "cumsum", "cumprod"}
)


def follow(baseline: Graph, candidate: Graph, relations: Relations, values: Values) -> Alignment:
    """Align both programs, as far as their values were kept."""
    entering = {
        relation.candidate: relation.parts[0].baseline
        for relation in relations.inputs
        if len({part.baseline for part in relation.parts}) == 1
    }
    by_source = align(baseline.nodes, candidate.nodes, entering)
    state = _State(values, by_source, entering)
    for node in candidate.nodes:
        if node.op != "input":
            state.follow(node)
    again = align(baseline.nodes, candidate.nodes, state.found)
    counterpart = dict(again.counterpart)
    by_users(baseline, candidate, counterpart, state.doubtful(again))
    agreed = {node for node, found in by_source.counterpart.items() if counterpart.get(node) == found}
    return Alignment(
        counterpart=counterpart,
        sure=(again.sure - {*state.found}) | (by_source.sure & agreed),
        inherited=again.inherited | (by_source.inherited & agreed),
    )


class _State:
    """What is known so far; ``measured`` of it are those that hold what their counterpart holds."""

    def __init__(self, values: Values, by_source: Alignment, entering: Mapping[NodeId, NodeId]) -> None:
        self.values, self.by_source = values, by_source
        self.found: dict[NodeId, NodeId] = dict(entering)
        self.measured: set[NodeId] = set(entering)
        self._figures = _Figures(values)
        self._own, self._given = values.candidate.nodes, values.baseline.nodes
        self._taken: set[NodeId] = set(entering.values())
        self._readers: dict[Hashable, list[Node]] = defaultdict(list)
        for node in values.baseline.graph.nodes:
            if node.operands:
                operands = bag(leaf_or(self._given, each, each) for each in node.operands)
                self._readers[operands].append(node)

    def follow(self, node: Node) -> None:
        """Find the counterpart: by what the node holds, what it reads, what it holds in another order."""
        found = self._by_value(node)
        if found is not None:
            self.measured.add(node.id)
        else:
            found = self._by_operands(node) or self._moved(node)
        if found is not None:
            self.found[node.id] = found
            self._taken.add(found)

    def doubtful(self, alignment: Alignment) -> frozenset[NodeId]:
        """Nodes that have their counterpart from their operand and do not hold the same."""
        return alignment.inherited - self.measured

    def _by_value(self, node: Node) -> NodeId | None:
        if node.id not in self.values.candidate.values:
            return None
        first = self.by_source.counterpart.get(node.id)
        if first is not None and self.values.measured(node.id, first).standing.is_clean:
            return first
        if node.op in LEAVES or node.id in self.by_source.sure:
            return None
        found = self._like(node)
        return next((each for each in found if self.values.measured(node.id, each).standing.is_clean), None)

    def _by_operands(self, node: Node) -> NodeId | None:
        """What does something else with the very operands that a node of the baseline reads."""
        if not node.operands or is_collective(node):
            return None
        operands = [leaf_or(self._own, each, self.found.get(each)) for each in node.operands]
        options = [
            each
            for each in self._readers.get(bag(operands), ())
            if each.id not in self._taken and _is_akin(node, each)
        ]
        options.sort(key=lambda each: each.op != node.op)
        return options[0].id if options and None not in operands else None

    def _moved(self, node: Node) -> NodeId | None:
        """What holds the same in another order, where no shape would let it hold it in the same."""
        if node.op in LEAVES or node.id in self.by_source.sure or node.id not in self.values.candidate.values:
            return None
        for other in self._like(node):
            measured = self.values.measured(node.id, other)
            plain = any(each.is_plain for each in self.values.readings(node.id, other))
            if not plain and measured.moved and measured.reading is not None:
                return other
        return None

    def _like(self, node: Node) -> list[NodeId]:
        found = self._figures.like(node)
        found.sort(key=lambda other: self._given[other].op != node.op)
        return found[:MOST_LIKE]


def by_users(
    baseline: Graph, candidate: Graph, counterpart: dict[NodeId, NodeId], doubtful: frozenset[NodeId]
) -> None:
    """What is read in the place of a node of the baseline stands for that node, if it stands for no other."""
    given = baseline.by_id()
    for node in reversed(candidate.nodes):
        found = given.get(counterpart[node.id]) if node.id in counterpart else None
        if found is None:
            continue
        if node.op == found.op and len(node.operands) == len(found.operands):
            for operand, other in zip(node.operands, found.operands, strict=True):
                if operand not in counterpart or operand in doubtful:
                    counterpart[operand] = other
        elif node.op in MOVEMENTS or is_collective(node):
            counterpart.setdefault(node.operands[0], found.id)


def _is_akin(node: Node, other: Node) -> bool:
    return node.op == other.op or any(
        {node.op, other.op} <= ops for ops in (MOVEMENTS, POINTWISE, _REDUCTIONS)
    )


class _Figures:
    """Of every value of the baseline a few numbers that do not depend on how it is laid out on ranks."""

    def __init__(self, values: Values) -> None:
        self._values = values
        kept = values.baseline
        self._nodes = [node for node in kept.graph.nodes if node.id in kept.values and node.op not in LEAVES]
        rows = [_figures(kept.values[node.id]) for node in self._nodes]
        self._rows = np.array(rows).reshape(len(rows), -1)

    def like(self, node: Node) -> list[NodeId]:
        """The baseline's nodes whose figures are those of a node, as it is or combined over ranks."""
        own = self._values.candidate.values[node.id]
        found = self._like(_figures(own))
        if found or own[0].dtype.kind not in "fi":
            return found
        for kind, axes in self._values.partials():
            found.extend(self._like(_figures(combined(own, kind, axes, self._values.ranks))))
        return found

    def _like(self, figures: Sequence[float]) -> list[NodeId]:
        row = np.array(figures)
        near = np.isclose(self._rows, row, rtol=ALIKE, atol=0.0, equal_nan=True).all(axis=1)
        return [self._nodes[int(place)].id for place in np.flatnonzero(near)]


def _figures(value: PerRank) -> tuple[float, ...]:
    distinct = list({id(each): each for each in value}.values())
    with np.errstate(all="ignore"):
        rows = np.array([_of_one(each) for each in distinct])
    return float(rows[:, 0].min()), float(rows[:, 1].max()), float(rows[:, 2].mean())


def _of_one(array: Array) -> tuple[float, float, float]:
    if not array.size:
        return 0.0, 0.0, 0.0
    real = np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64)
    return float(real.min()), float(real.max()), float(np.square(real).mean())
