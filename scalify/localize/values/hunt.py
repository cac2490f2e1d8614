"""The first node that is not right and whose right value mends the outputs.

A node is *right* if each rank holds what it should of its counterpart, whole or in blocks; *pending* if that
is still to be combined over ranks. What is neither, and leads to a wrong output, is tried: first where all
operands are right, then the others, then what is pending, each in the order of the program.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from time import process_time

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Node, NodeId
from scalify.localize.align import LEAVES, Alignment, is_collective
from scalify.localize.first import Why, is_movement
from scalify.localize.frames import Lines
from scalify.localize.values.chains import Chains
from scalify.localize.values.standings import Values
from scalify.localize.values.trial import PASSED, PENDING, WHOLE, Outcome, Right, Trials
from scalify.prove.region import Goal
from scalify.relate.model import Relations

LONGEST_S = 10.0
MOST_MOVED = 24
MOST_CUTS = 3


@dataclass(frozen=True, slots=True)
class Found:
    """``is_exact``: the node was chosen among several, so nothing before it is changed instead. ``right`` are
    the nodes of which right values were taken, where that is not the node itself."""

    node: Node
    why: Why
    outcome: Outcome
    is_exact: bool = False
    right: tuple[NodeId, ...] = ()


@dataclass(slots=True)
class Hunt:
    values: Values
    alignment: Alignment
    trials: Trials
    lines: Lines
    suspicious: tuple[Node, ...] = ()
    moved: tuple[Node, ...] = ()
    pending: frozenset[NodeId] = frozenset()
    first: Node | None = None
    state: Mapping[NodeId, str] = field(default_factory=dict[NodeId, str])
    guilty: frozenset[NodeId] = frozenset()
    chains: Chains = field(init=False)
    until_s: float = field(default_factory=lambda: process_time() + LONGEST_S)

    def found(self) -> Found | None:
        """The first node that mends all outputs that depend on it, or most of them."""
        found = self._first_found()
        return None if found is None else self._along_its_chain(found)

    def _first_found(self) -> Found | None:
        nodes = [node for node in self._leading_to_wrong() if node.op != "input"]
        self.state = state = {node.id: self._state(node) for node in nodes}
        self.pending = frozenset(node for node, said in state.items() if said == "pending")
        self.guilty = self._guilty()
        self.chains = Chains(self.values, state, self.lines, self.innocent())
        self.suspicious = tuple(
            node for node in nodes if state[node.id] == "wrong" and node.id in self.guilty
        )
        wrong = {node.id for node in self.suspicious}
        begin = [node for node in self.suspicious if not wrong & {*node.operands}]
        self.first = begin[0] if begin else None
        later = [node for node in self.suspicious if wrong & {*node.operands}]
        pending = [node for node in nodes if node.id in self.pending]
        self.moved = tuple(node for node in nodes if state[node.id] == "moved" and node.id in self.guilty)
        groups = (begin, later, pending, self.moved)
        ranked = [[n for n in group if self.trials.reaches_all(n.id)] for group in groups]
        rest = [n for group in groups for n in group if not self.trials.reaches_all(n.id)]
        best: Found | None = None
        for found in chain(
            self._one_by_one(ranked[0]),
            self._together(begin),
            self._by_line((*begin, *pending)),
            self._by_cut(begin),
            self._by_line(self.moved),
            self._one_by_one((*ranked[1], *ranked[2], *ranked[3], *rest)),
        ):
            if found.outcome.mended == self.trials.wrong:
                return found
            if best is None or len(found.outcome.mended) > len(best.outcome.mended):
                best = found
        return best

    def _one_by_one(self, nodes: Sequence[Node]) -> Iterator[Found]:
        for node in nodes:
            if process_time() > self.until_s:
                return
            found = self._tried(node)
            if found is not None:
                yield found

    def _together(self, nodes: Sequence[Node]) -> Iterator[Found]:
        """Nodes that read one value and would all be right with another: something is missing there."""
        for operand in dict.fromkeys(operand for node in nodes for operand in node.operands):
            readers = [node for node in nodes if operand in node.operands]
            rights = [next(self._rights(node), None) for node in readers]
            changed = {
                node.id: right.value for node, right in zip(readers, rights, strict=True) if right is not None
            }
            if len(changed) > 1:
                outcome = self.trials.outcome(changed)
                if outcome.is_good:
                    named = operand if operand in self.guilty else next(iter(changed))
                    first = self.chains.beginning(self.values.candidate.nodes[named], self.guilty)
                    yield Found(first, Why.DIVERGES, outcome, right=tuple(changed))

    def _misread(self, node: Node) -> Node | None:
        """An operand that is another value than it should be, if the candidate's own code gave it."""
        counterpart = self.alignment.counterpart
        given = self.values.baseline.nodes.get(counterpart.get(node.id, node.id))
        alike = given is not None and given.op == node.op and len(given.operands) == len(node.operands)
        if given is None or not alike or self.chains.is_own(node):
            return None
        for operand, wanted in zip(node.operands, given.operands, strict=True):
            source = self.values.candidate.nodes[operand]
            if counterpart.get(operand, wanted) != wanted and self.chains.is_own(source):
                return source
        return None

    def cone(self, lasts: Sequence[NodeId], *, is_exact: bool = False) -> list[Node]:
        """What is not right and leads to some nodes through nothing else, and the constants that it reads.

        If it ``is_exact``, these nodes and their constants.
        """
        nodes = self.values.candidate.nodes
        wrong = set[NodeId]() if is_exact else {each.id for each in self.suspicious}
        constants = (each.id for each in nodes.values() if each.op == "constant")
        wrong |= {each for each in constants if each not in self.alignment.counterpart}
        found, left = {*lasts}, [*lasts]
        while left:
            for operand in nodes[left.pop()].operands:
                if operand not in found and operand in wrong:
                    found.add(operand)
                    left.append(operand)
        return [each for each in self.values.candidate.graph.nodes if each.id in found]

    def _by_line(self, nodes: Sequence[Node]) -> Iterator[Found]:
        """Nodes of one line, all at once: what is wrong in one layer is wrong in each."""
        seen: set[Hashable] = set()
        for node in nodes:
            for way in (node.stack, node.site):
                if not way or (node.op, way) in seen or process_time() > self.until_s:
                    continue
                seen.add((node.op, way))
                alike = [
                    each
                    for each in self.values.candidate.graph.nodes
                    if each.op == node.op and way in (each.stack, each.site) and self._is_like(each, node)
                ]
                found = self._all_of(node, alike)
                if found is not None:
                    yield found
                    break

    def _is_like(self, node: Node, first: Node) -> bool:
        """Whether a node is moved as another is, where that is all that is wrong with it."""
        return self.state.get(first.id) != "moved" or self.state.get(node.id) == "moved"

    def _all_of(self, first: Node, nodes: Sequence[Node]) -> Found | None:
        """Right values for all nodes that are not right, of which one is to be the first."""
        for kind in (WHOLE, PENDING):
            changed: dict[NodeId, PerRank] = {}
            for node in nodes:
                held = self.state.get(node.id, "right") in ("right", "pending" if kind == PENDING else "")
                held = held or self._becomes_right(node)
                right = None if held else next((r for r in self._rights(node) if r.kind == kind), None)
                if right is not None:
                    changed[node.id] = right.value
            if len(changed) > 1 and next(iter(changed)) == first.id:
                outcome = self.trials.outcome(changed)
                if outcome.is_good:
                    return self._of_line(first, kind, outcome)
        return None

    def _becomes_right(self, node: Node) -> bool:
        """Whether what is pending is combined wherever a wrong output depends on it."""
        graph = self.values.candidate.graph
        ends = {output.value for output in graph.outputs if output.name in self.trials.wrong}
        readers = (each.id for each in graph.nodes if node.id in each.operands and each.id in self.state)
        right = all(self.state[each] == "right" for each in readers)
        return right and node.id in self.pending and node.id not in ends

    def _by_cut(self, begin: Sequence[Node]) -> Iterator[Found]:
        """What has no right value of its own: those that come next and have one, all at once."""
        rights = self._whole(node for node in self.suspicious if node.id not in self.alignment.inherited)
        begin = sorted(begin, key=is_movement)
        reached: dict[NodeId, list[NodeId]] = {node.id: [node.id] for node in begin}
        for _ in range(MOST_CUTS):
            for node in begin:
                cut = self.chains.cut(reached[node.id], rights)
                reached[node.id] = [*cut]
                if not cut or process_time() > self.until_s:
                    continue
                outcome = self.trials.outcome(cut)
                if outcome.is_good:
                    named = self.chains.likely(node, cut)
                    if named.id not in self.alignment.counterpart and len(cut) == 1:
                        named = self.chains.combined(
                            self.values.candidate.nodes[next(iter(cut))], self.guilty
                        )
                    yield Found(named, Why.DIVERGES, outcome, right=tuple(cut))

    def _along_its_chain(self, found: Found) -> Found:
        """Where a mistake more likely lies that can be mended at several places."""
        if found.why is Why.PENDING and not is_collective(found.node):
            node = self.chains.misused(found.node)
            same = node.id == found.node.id
            why = Why.PENDING if self.state.get(node.id) == "pending" else Why.DIVERGES
            return found if same else Found(node, why, found.outcome, is_exact=True)
        misread = self._misread(found.node)
        if misread is not None:
            return replace(found, node=misread, right=(found.node.id,))
        given = self.values.baseline.nodes.get(self.alignment.counterpart.get(found.node.id, found.node.id))
        if found.node.op in LEAVES and (given is None or given.op != found.node.op):
            found = replace(found, node=self.chains.reader(found.node))
        for nodes in self.chains.scaled(found.node, self.alignment.counterpart):
            other = self.trials.outcome(self._whole(nodes))
            if other.is_good and other.mended >= found.outcome.mended:
                return Found(nodes[0], Why.DIVERGES, other, is_exact=True)
        return found

    def _of_line(self, node: Node, kind: str, outcome: Outcome) -> Found:
        pending = [operand for operand in node.operands if operand in self.pending]
        if kind == WHOLE and pending and not is_collective(node):
            return Found(self._origin(pending[0]), Why.PENDING, outcome)
        why = Why.PENDING if kind == WHOLE and node.id in self.pending else Why.DIVERGES
        return Found(node, why, outcome)

    def innocent(self) -> list[Node]:
        """What is right, and what is not and becomes right wherever it is used."""
        return [node for node in self.values.candidate.graph.nodes if node.id not in self.guilty]

    def _guilty(self) -> frozenset[NodeId]:
        """What is not right, and leads to a wrong output through nothing else."""
        graph = self.values.candidate.graph
        found = {
            output.value
            for output in graph.outputs
            if output.name in self.trials.wrong and self.state.get(output.value) != "right"
        }
        for node in reversed(graph.nodes):
            if node.id in found:
                found.update(each for each in node.operands if self.state.get(each, "right") != "right")
        return frozenset(found)

    def is_before(self, one: NodeId, other: NodeId) -> bool:
        """Whether a node that is not right leads to another one."""
        nodes = self.values.candidate.nodes
        leading, left = {other}, [other]
        while left:
            operands = [each for each in nodes[left.pop()].operands if each not in leading]
            leading.update(operands)
            left.extend(operands)
        wrong = {node.id for node in self.suspicious}
        return one != other and one in leading and one in wrong

    def wrong_goals(self, relations: Relations) -> list[Goal]:
        """The results that should be the baseline's."""
        given = {output.name: output.value for output in self.values.baseline.graph.outputs}
        own = {output.name: output.value for output in self.values.candidate.graph.outputs}
        return [
            Goal(
                baseline=given[relation.baseline],
                candidate=own[relation.candidate],
                choices=relation.choices,
                output=relation.candidate,
            )
            for relation in relations.outputs
            if relation.candidate in self.trials.wrong
        ]

    def _leading_to_wrong(self) -> list[Node]:
        graph = self.values.candidate.graph
        needed = {output.value for output in graph.outputs if output.name in self.trials.wrong}
        for node in reversed(graph.nodes):
            if node.id in needed:
                needed.update(node.operands)
        return [node for node in graph.nodes if node.id in needed]

    def _state(self, node: Node) -> str:
        counterpart = self.alignment.counterpart.get(node.id)
        if node.id not in self.values.candidate.values:
            return "wrong"
        if counterpart is None or counterpart not in self.values.baseline.values:
            return "right" if node.op in LEAVES else "wrong"
        measured = self.values.measured(node.id, counterpart)
        if measured.standing.is_clean:
            return "right" if measured.standing.partial is None else "pending"
        plain = any(each.is_plain for each in self.values.readings(node.id, counterpart))
        if not measured.moved:
            return "wrong"
        return "right" if measured.reading is not None and not plain else "moved"

    def _tried(self, node: Node) -> Found | None:
        for right in self._rights(node):
            if self._is_held(node, right):
                continue
            outcome = self.trials.outcome({node.id: right.value})
            if outcome.is_good:
                return self._before(node, outcome) or self._blamed(node, right, outcome)
        return None

    def _before(self, node: Node, outcome: Outcome) -> Found | None:
        """Where numbers were put in a wrong order that a node, which mixes them, is the first to show."""
        moved = {each.id for each in self.moved}
        found: set[NodeId] = set()
        left = [node.id]
        while left:
            operands = self.values.candidate.nodes[left.pop()].operands
            fresh = [each for each in operands if each in moved and each not in found]
            found.update(fresh)
            left.extend(fresh)
        before = [each for each in self.moved if each.id in found and each.id != node.id]
        for each in before[:MOST_MOVED]:
            for right in self._rights(each):
                other = self.trials.outcome({each.id: right.value}) if right.kind == WHOLE else None
                if other is not None and other.is_good and len(other.mended) >= len(outcome.mended):
                    return Found(each, Why.DIVERGES, other)
        return None

    def _rights(self, node: Node) -> Iterator[Right]:
        counterpart = self.alignment.counterpart.get(node.id)
        given = None if counterpart is None else self.values.baseline.nodes.get(counterpart)
        own = node.id in self.alignment.sure and given is not None and given.op == node.op
        return self.trials.rights(node, counterpart, is_own=own)

    def _whole(self, nodes: Iterable[Node]) -> dict[NodeId, PerRank]:
        """What nodes should hold whole or in blocks, of those of which that is known."""
        found = ((node, next((r for r in self._rights(node) if r.kind == WHOLE), None)) for node in nodes)
        return {node.id: right.value for node, right in found if right is not None}

    def _is_held(self, node: Node, right: Right) -> bool:
        """Whether a trial would change nothing of note: what is pending may lie on the ranks in any way."""
        return right.kind in (PENDING, PASSED) and node.id in self.pending

    def _blamed(self, node: Node, right: Right, outcome: Outcome) -> Found:
        """Where a value was used as if nothing were pending: what should have combined it, or made it."""
        pending = [operand for operand in node.operands if operand in self.pending]
        if right.kind == PENDING or not pending or is_collective(node):
            why = Why.PENDING if node.id in self.pending else Why.DIVERGES
            return Found(node, why, outcome)
        for operand in pending:
            made = self._origin(operand)
            for whole in self._rights(made):
                if whole.kind in (PENDING, PASSED):
                    continue
                other = self.trials.outcome({made.id: whole.value})
                if other.is_good and len(other.mended) >= len(outcome.mended):
                    return Found(made, Why.PENDING, other)
        return Found(node, Why.DIVERGES, outcome)

    def _origin(self, value: NodeId) -> Node:
        """Where what is pending comes from: the last collective, or the first node of which it is so."""
        node = self.values.candidate.nodes[value]
        while not is_collective(node):
            before = [operand for operand in node.operands if operand in self.pending]
            if not before:
                break
            node = self.values.candidate.nodes[before[0]]
        return node
