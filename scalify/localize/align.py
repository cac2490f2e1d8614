"""Which node of the baseline each node of the candidate stands for: the same code, or the same place in it.

In: the nodes of a region. Out: an alignment, one to one except for what the candidate has beside: a
collective, a movement of data or a multiple without a counterpart of its own inherits that of its operand.
Nothing here is a proof; an alignment in the wrong place misleads a reader and nothing else.

Stages, each over what is left: the exact stack of source lines and the op; the same op on the counterparts of
its operands; stacks without line numbers; scopes; the op alone. Attributes are no part of any key, so a node
whose attribute was edited still meets its counterpart.
"""

import itertools
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from scalify.ir.graph import Node, NodeId
from scalify.ir.ops import OPS
from scalify.ir.ops.elementwise import ELEMENTWISE

MOVEMENTS = frozenset({"reshape", "transpose", "broadcast", "slice", "concat", "pad", "reverse", "cast"})
"""Ops that keep every number as it is and change only where it stands."""

POINTWISE = frozenset(op.name for op in ELEMENTWISE) - MOVEMENTS
"""Ops of which one is easily written for another."""

LEAVES = frozenset({"constant", "iota", "rank", "random"})

DEEP_STACK = 3
"""A stack of so many frames says where a node comes from even without line numbers."""

Key = Callable[[Node], Hashable]


@dataclass(frozen=True, slots=True)
class Alignment:
    """``counterpart`` of candidate nodes; ``inherited`` are those that have it from their operand.

    ``sure`` are aligned by the same source, so that their attributes may be compared as two versions of one
    line of code.
    """

    counterpart: Mapping[NodeId, NodeId]
    sure: frozenset[NodeId]
    inherited: frozenset[NodeId]


def is_collective(node: Node) -> bool:
    """Whether ranks exchange data in it."""
    return node.op in OPS and OPS[node.op].across is not None


def align(
    baseline: Sequence[Node], candidate: Sequence[Node], entering: Mapping[NodeId, NodeId]
) -> Alignment:
    """Align the nodes of both sides, in the order in which they run; ``entering`` is known already.

    What is known already may be of any nodes, inputs or not.
    """
    state = _State(baseline, candidate, entering)
    state.by_operands(_exact)
    state.in_sequence(_exact)
    sure = set(state.found)
    state.by_operands()
    state.in_sequence(_without_lines)
    sure |= {node.id for node in candidate if node.id in state.found and len(node.stack) >= DEEP_STACK}
    state.in_sequence(_scoped)
    state.by_sources()
    state.by_operands()
    state.by_operands(_any_pointwise)
    state.in_sequence(_by_op)
    state.leaves_by_users()
    own = frozenset(state.found)
    return Alignment(
        counterpart=state.inherited(),
        sure=frozenset(sure),
        inherited=frozenset(node.id for node in candidate) - own,
    )


def _exact(node: Node) -> Hashable:
    return (node.op, node.stack or node.site) if node.stack or node.site else None


def _without_lines(node: Node) -> Hashable:
    frames = node.stack or ((node.site,) if node.site else ())
    known = frames and node.op not in LEAVES
    return (node.op, tuple((site.file, site.function) for site in frames)) if known else None


def _scoped(node: Node) -> Hashable:
    return (node.op, node.scope) if node.scope and node.op not in LEAVES else None


def _by_op(node: Node) -> Hashable:
    return None if node.op in LEAVES else node.op


def _any_pointwise(node: Node) -> Hashable:
    """What was edited may be the op itself."""
    return "pointwise" if node.op in POINTWISE else node.op


class _State:
    """What is aligned so far, and which baseline nodes are taken."""

    def __init__(
        self, baseline: Sequence[Node], candidate: Sequence[Node], entering: Mapping[NodeId, NodeId]
    ) -> None:
        self.baseline = [node for node in baseline if node.op != "input"]
        self.candidate = [node for node in candidate if node.op != "input"]
        self.nodes = {node.id: node for node in candidate}
        self.given = {node.id: node for node in baseline}
        self.places = {node.id: place for place, node in enumerate(self.baseline)}
        self.found: dict[NodeId, NodeId] = dict(entering)
        self.taken: set[NodeId] = set(entering.values())

    def pair(self, node: NodeId, counterpart: NodeId) -> None:
        """Align two nodes."""
        self.found[node] = counterpart
        self.taken.add(counterpart)

    def in_sequence(self, key: Key) -> None:
        """Align what is left, order preserved, where keys are equal, between what is aligned in order."""
        for own, other in self._gaps():
            left = [node for node in own if node.id not in self.taken and key(node) is not None]
            right = [node for node in other if node.id not in self.found and key(node) is not None]
            for one, two in common([key(n) for n in left], [key(n) for n in right]):
                self.pair(right[two].id, left[one].id)

    def _gaps(self) -> list[tuple[Sequence[Node], Sequence[Node]]]:
        pairs = [
            (self.places[self.found[node.id]], place)
            for place, node in enumerate(self.candidate)
            if self.found.get(node.id) in self.places
        ]
        steady = [(-1, -1), *rising(pairs), (len(self.baseline), len(self.candidate))]
        return [
            (self.baseline[one[0] + 1 : other[0]], self.candidate[one[1] + 1 : other[1]])
            for one, other in itertools.pairwise(steady)
        ]

    def by_operands(self, key: Key = _by_op) -> None:
        """Align nodes of one key whose operands are counterparts; collectives stand for their operand."""
        free: dict[Hashable, list[NodeId]] = defaultdict(list)
        for node in self.baseline:
            if node.id not in self.taken and node.operands:
                free[key(node), bag(map(self._given_operand, node.operands))].append(node.id)
        through: dict[NodeId, NodeId] = dict(self.found)
        for node in self.candidate:
            if node.id in self.found:
                continue
            operands = [self._operand(operand, through) for operand in node.operands]
            known = operands and None not in operands
            options = free.get((key(node), bag(operands))) if known else None
            if options:
                through[node.id] = options.pop(0)
                self.pair(node.id, through[node.id])
            elif is_collective(node) and node.operands[0] in through:
                through[node.id] = through[node.operands[0]]

    def _given_operand(self, operand: NodeId) -> Hashable:
        return leaf_or(self.given, operand, operand)

    def _operand(self, operand: NodeId, through: Mapping[NodeId, NodeId]) -> Hashable:
        return leaf_or(self.nodes, operand, through.get(operand))

    def by_sources(self) -> None:
        """Align computations whose operands go back, through any movement of data, to counterparts."""
        free: dict[Hashable, list[NodeId]] = defaultdict(list)
        for node in self.baseline:
            if node.id not in self.taken and node.op not in MOVEMENTS | LEAVES:
                free[node.op, bag(_source(o, self.given) for o in node.operands)].append(node.id)
        for node in self.candidate:
            if node.id in self.found or node.op in MOVEMENTS | LEAVES or is_collective(node):
                continue
            sources = [self._counterpart_of_source(operand) for operand in node.operands]
            options = free.get((node.op, bag(sources))) if None not in sources else None
            if options:
                self.pair(node.id, options.pop(0))

    def _counterpart_of_source(self, operand: NodeId) -> NodeId | None:
        found = self.found.get(_source(operand, self.nodes))
        return None if found is None else _source(found, self.given)

    def leaves_by_users(self) -> None:
        """Align constants that are read in the same place by counterparts."""
        for node in self.candidate:
            given = self.given.get(self.found[node.id]) if node.id in self.found else None
            if given is None or given.op != node.op:
                continue
            for operand, other in zip(node.operands, given.operands, strict=False):
                one, two = self.nodes.get(operand), self.given.get(other)
                leaves = one is not None and two is not None and one.op == two.op and one.op in LEAVES
                if leaves and operand not in self.found:
                    self.pair(operand, other)

    def inherited(self) -> dict[NodeId, NodeId]:
        """All counterparts, with those that nodes have from their operands."""
        all_found = dict(self.found)
        for node in self.candidate:
            origin = self._origin(node)
            if origin is not None and node.id not in all_found and origin in all_found:
                all_found[node.id] = all_found[origin]
        return all_found

    def _origin(self, node: Node) -> NodeId | None:
        """The operand of which a node is the same value, moved, combined or multiplied by a number."""
        if node.op in MOVEMENTS or is_collective(node):
            return node.operands[0]
        values = [operand for operand in node.operands if not self._is_number(operand)]
        if len(values) != 1 or node.op not in ("mul", "div"):
            return None
        return values[0] if node.op == "mul" or node.operands[0] == values[0] else None

    def _is_number(self, operand: NodeId) -> bool:
        source = self.nodes.get(_source(operand, self.nodes))
        return source is not None and source.op == "constant"


def leaf_or(nodes: Mapping[NodeId, Node], operand: NodeId, other: Hashable) -> Hashable:
    """What a leaf is, for there may be many of the same; of an operand that is none, what else it is."""
    node = nodes.get(operand)
    if node is None or node.op not in LEAVES:
        return other
    return node.op, node.attrs.get("data"), node.attrs.get("digest")


def _source(value: NodeId, nodes: Mapping[NodeId, Node]) -> NodeId:
    """Where a value was computed: the end of the movements and collectives that lead to it."""
    while True:
        node = nodes.get(value)
        if node is None or not node.operands or not (node.op in MOVEMENTS or is_collective(node)):
            return value
        value = node.operands[0]


def bag(keys: Iterable[Hashable]) -> Hashable:
    """Keys in any order."""
    return frozenset(Counter(keys).items())


def rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of ``pairs`` (whose second numbers rise) in which the first numbers rise as well."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (value, _) in enumerate(pairs):
        place = bisect_left(ends, value)
        before.append(last[place - 1] if place else -1)
        ends[place : place + 1] = [value]
        last[place : place + 1] = [number]
    chosen: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


def common(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Places of equal keys in both sequences, in order: first keys that occur once, then the rest."""
    counts = Counter(one), Counter(other)
    places = {key: place for place, key in enumerate(other) if counts[1][key] == 1}
    unique = [(place, places[key]) for place, key in enumerate(one) if counts[0][key] == 1 and key in places]
    swapped = [(second, first) for first, second in unique]
    anchors = [(first, second) for second, first in rising(swapped)]
    found: list[tuple[int, int]] = [*anchors]
    for (a, b), (c, d) in itertools.pairwise([(-1, -1), *anchors, (len(one), len(other))]):
        matcher = SequenceMatcher(None, one[a + 1 : c], other[b + 1 : d], autojunk=False)
        for block in matcher.get_matching_blocks():
            found.extend((a + 1 + block.a + i, b + 1 + block.b + i) for i in range(block.size))
    return sorted(found)
