"""Where along a chain of nodes a mistake lies that could be mended at several of them.

A factor that is missing or wrong can be mended anywhere along a chain of linear nodes, and a sum that is
missing anywhere between where its addends are made and where they are taken for whole. Code that only the
candidate runs is the more likely place: it is what was written for ranks.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Node, NodeId
from scalify.localize.align import is_collective
from scalify.localize.first import is_movement
from scalify.localize.frames import Lines
from scalify.localize.values.standings import Values

SCALING = frozenset({"mul", "div", "all_reduce", "reduce_scatter", "reduce", "constant"})
MOST_CUT = 256


class Chains:
    """What reads what in the candidate, and in what ``state`` each is that leads to a wrong output."""

    def __init__(
        self, values: Values, state: Mapping[NodeId, str], lines: Lines, innocent: Iterable[Node]
    ) -> None:
        self._values, self._state, self._lines = values, state, lines
        self._nodes = values.candidate.nodes
        self._readers: dict[NodeId, list[Node]] = {}
        for node in values.candidate.graph.nodes:
            for operand in dict.fromkeys(node.operands):
                self._readers.setdefault(operand, []).append(node)
        self._cleared = {(node.op, node.stack) for node in innocent if node.stack}
        self._ends = {output.value for output in values.candidate.graph.outputs}

    def is_own(self, node: Node) -> bool:
        """Whether only the candidate runs a line that led to it, in a method that the baseline runs too."""
        return self._lines.is_new(node.stack)

    def scaled(self, node: Node, counterpart: Mapping[NodeId, NodeId]) -> list[list[Node]]:
        """Nodes of the candidate's own code at which a factor could be wrong, line by line, if it is one."""
        if self.is_own(node) or not self._is_multiple(node, counterpart):
            return []
        lines: dict[Hashable, list[Node]] = {}
        for each in self._values.candidate.graph.nodes:
            wrong = self._state.get(each.id) == "wrong" and self.is_own(each)
            if wrong and self._is_multiple(each, counterpart):
                lines.setdefault((each.op, each.stack), []).append(each)
        return sorted(lines.values(), key=lambda nodes: nodes[0].op not in SCALING)

    def reader(self, node: Node) -> Node:
        """What is the first to compute with a number, if it is not right then."""
        readers = self._readers.get(node.id, ())
        return next((each for each in readers if self._state.get(each.id) == "wrong"), node)

    def beginning(self, node: Node, guilty: Collection[NodeId]) -> Node:
        """Where what a node only passes on was first not right."""
        while True:
            before = [operand for operand in node.operands if operand in guilty]
            if not is_movement(node) or len(before) != 1:
                return node
            node = self._nodes[before[0]]

    def combined(self, node: Node, guilty: Collection[NodeId]) -> Node:
        """The collective whose result is the one that a node reads and that is not right; else the node."""
        for operand in node.operands:
            source = self._nodes[operand]
            while (
                source.id in guilty and source.operands and not is_collective(source) and is_movement(source)
            ):
                source = self._nodes[source.operands[0]]
            if source.id in guilty and is_collective(source):
                return source
        return node

    def likely(self, first: Node, lasts: Collection[NodeId]) -> Node:
        """From one node on, before some others: the first of the candidate's own code, or of a line by which
        nothing right came; else the first."""
        between, left = {first.id}, [first.id]
        while left:
            for node in self._readers.get(left.pop(), ()):
                if node.id not in between and node.id not in lasts and self._state.get(node.id) == "wrong":
                    between.add(node.id)
                    left.append(node.id)
        inside = [node for node in self._values.candidate.graph.nodes if node.id in between]
        uncleared = [node for node in inside if (node.op, node.stack) not in self._cleared]
        own = [node for node in uncleared if self.is_own(node)]
        return next(iter((*own, *uncleared)), first)

    def misused(self, made: Node) -> Node:
        """Of a pending value: where it is made, combined for nothing, or taken for whole."""
        pending, readers = self._while_pending(made)
        combining = [node for node in readers if is_collective(node)]
        for node in combining:
            if node.id not in self._ends and node.id not in self._readers:
                return node
        wrong = [node for node in readers if self._state.get(node.id) == "wrong"]
        if combining and wrong:
            return wrong[0]
        own = [node for node in (*pending, *wrong) if self.is_own(node)]
        return own[0] if own and not self.is_own(made) else made

    def cut(self, begins: Sequence[NodeId], rights: Mapping[NodeId, PerRank]) -> dict[NodeId, PerRank]:
        """The nearest nodes after some that have a right value, if all that is wrong goes through them."""
        found: dict[NodeId, PerRank] = {}
        left, seen = [*begins], {*begins}
        while left:
            for node in self._readers.get(left.pop(0), ()):
                if node.id in seen or self._state.get(node.id) not in ("wrong", "moved"):
                    continue
                seen.add(node.id)
                if node.id in rights:
                    found[node.id] = rights[node.id]
                elif node.id in self._ends or len(seen) > MOST_CUT:
                    return {}
                else:
                    left.append(node.id)
        return found

    def _is_multiple(self, node: Node, counterpart: Mapping[NodeId, NodeId]) -> bool:
        given = counterpart.get(node.id)
        if given is None or given not in self._values.baseline.values:
            return False
        if node.id not in self._values.candidate.values:
            return False
        measured = self._values.measured(node.id, given)
        return measured.factor is not None or measured.standing.scale != 1

    def _while_pending(self, made: Node) -> tuple[list[Node], list[Node]]:
        """What is pending as a value is, and what reads any of it and is not."""
        pending = [made]
        readers: list[Node] = []
        for node in pending:
            for reader in self._readers.get(node.id, ()):
                still = self._state.get(reader.id) == "pending" or self._is_dead_copy(reader)
                into = pending if still and not is_collective(reader) else readers
                if reader not in into:
                    into.append(reader)
        return pending, self._in_order(readers)

    def _is_dead_copy(self, node: Node) -> bool:
        return node.id not in self._state and len(node.operands) == 1

    def _in_order(self, nodes: Sequence[Node]) -> list[Node]:
        ids = {node.id for node in nodes}
        return [node for node in self._values.candidate.graph.nodes if node.id in ids]
