"""Every rank's program beside those of the others, in one graph without a mesh.

In: a graph for each rank of a mesh. Out: one unrolled graph: a node of rank 2 is called ``rank2.NODE``, an
input or output of it ``NAME@rank2``, and collectives are ordinary operations over the ranks' values. So ranks
may hold shards of different sizes, and run different operations. Each runs its own in order and waits in a
collective for its group, as it would in life; collectives that do not meet are an error that names both.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import cast

from scalify.errors import InvalidGraph
from scalify.ir.check import check, place
from scalify.ir.graph import Attr, Graph, Node, NodeId, Output, TensorType
from scalify.ir.mesh import Groups, Mesh, RankInt
from scalify.ir.ops import OPS
from scalify.ir.unrolled import MOST_RANKS, ranked
from scalify.load.exchanges import MEET_HINT, Exchange, Member
from scalify.load.messages import SEND, Mail, Message, message_of, patient
from scalify.load.ranks import check_complete

MOST_NODES = 200_000

_COMMUNICATES = re.compile(
    r"c10d|symm_mem|collective|send|recv|all.?reduce|all.?gather|reduce.?scatter|all.?to.?all", re.IGNORECASE
)


def unroll(graphs_by_rank: Mapping[int, Graph], mesh: Mesh) -> Graph:
    """All ranks' programs as one graph."""
    check_complete(graphs_by_rank, mesh)
    count = sum(len(graph.nodes) for graph in graphs_by_rank.values())
    if not 2 <= mesh.size <= MOST_RANKS or count > MOST_NODES:
        raise _too_much(f"{mesh.size} ranks of {count} operations")
    graphs = {rank: replace(graph, nodes=patient(graph.nodes)) for rank, graph in graphs_by_rank.items()}
    unrolling = _Unrolling([_Rank(rank, graphs[rank]) for rank in range(mesh.size)])
    unrolling.run()
    unrolled = Graph(
        name=graphs_by_rank[0].name,
        nodes=tuple(unrolling.nodes.values()),
        outputs=tuple(output for rank in unrolling.ranks for output in rank.outputs()),
        unrolled=mesh.size,
        notes=tuple(dict.fromkeys(note for graph in graphs.values() for note in graph.notes)),
    )
    check(unrolled)
    return unrolled


def _too_much(what: str) -> InvalidGraph:
    return InvalidGraph(
        f"{what} are too many to be put side by side",
        hint=f"at most {MOST_NODES} operations on 2 to {MOST_RANKS} ranks",
    )


@dataclass
class _Rank:
    """A rank as far as it has run: its next node, and what its values are called among all."""

    number: int
    graph: Graph
    next: int = 0
    values: dict[NodeId, NodeId] = field(default_factory=dict[NodeId, NodeId])
    types: dict[NodeId, TensorType] = field(default_factory=dict[NodeId, TensorType])

    def node(self) -> Node | None:
        """What it would run now; None at its end."""
        return self.graph.nodes[self.next] if self.next < len(self.graph.nodes) else None

    def pass_by(self, value: NodeId) -> None:
        """The node is run, and this is its value."""
        node = self.graph.nodes[self.next]
        self.values[node.id], self.types[node.id] = value, node.type
        self.next += 1

    def member(self) -> Member:
        """The rank in the collective in which it waits."""
        node = self.graph.nodes[self.next]
        (operand,) = node.operands
        return Member(rank=self.number, node=node, value=self.values[operand], type=self.types[operand])

    def outputs(self) -> list[Output]:
        return [
            Output(
                name=ranked(output.name, self.number),
                value=self.values[output.value],
                alias=None if output.alias is None else ranked(output.alias, self.number),
            )
            for output in self.graph.outputs
        ]


class _Unrolling:
    def __init__(self, ranks: Sequence[_Rank]) -> None:
        self.ranks = ranks
        self.nodes: dict[NodeId, Node] = {}
        self.mail = Mail.empty()

    def run(self) -> None:
        """All ranks up to the collectives or messages they wait for, then these; and on."""
        while True:
            before = sum(rank.next for rank in self.ranks)
            for rank in self.ranks:
                self._run_alone(rank)
            waiting = {rank.number: self._group(rank, node) for rank in self.ranks if (node := rank.node())}
            if not waiting:
                self.mail.check_empty()
                return
            ready = {
                group
                for rank, group in waiting.items()
                if not self._receives(rank) and all(waiting.get(member) == group for member in group)
            }
            if not ready and before == sum(rank.next for rank in self.ranks):
                raise self._stuck(waiting)
            for group in sorted(ready):
                self._exchange(group)

    def _run_alone(self, rank: _Rank) -> None:
        while (node := rank.node()) is not None and OPS[node.op].across is None:
            message = message_of(node, rank.number)
            if message is not None:
                if not self._met(rank, node, message):
                    return
                continue
            operands = tuple(rank.values[operand] for operand in node.operands)
            alone = _on_rank(node, rank.number)
            rank.pass_by(self._add(rank.number, replace(alone, operands=operands)))

    def _met(self, rank: _Rank, node: Node, message: Message) -> bool:
        """Send and go on; receive what has been sent, or wait for it."""
        value: NodeId | None
        if node.attrs["target"] == SEND:
            value = rank.values[node.operands[0]]
            self.mail.send(message, value, rank.types[node.operands[0]])
        else:
            value = self.mail.receive(message, node)
        if value is not None:
            rank.pass_by(value)
        return value is not None

    def _group(self, rank: _Rank, node: Node) -> tuple[int, ...]:
        """The ranks with which this one runs a collective, or the two of a message."""
        message = message_of(node, rank.number)
        if message is not None:
            return (message.source, message.target)
        everybody = tuple(range(len(self.ranks)))
        groups = cast(Groups, node.attrs.get("groups", (everybody,)))
        group = next((group for group in groups if rank.number in group), None)
        if group is None or not set(group) <= set(everybody):
            raise InvalidGraph(
                f"{place(node)}: no group is of rank {rank.number} of this mesh", hint=MEET_HINT
            )
        return group

    def _receives(self, rank: int) -> bool:
        node = self.ranks[rank].node()
        return node is not None and message_of(node, rank) is not None

    def _exchange(self, group: tuple[int, ...]) -> None:
        members = [self.ranks[rank].member() for rank in group]
        exchange = Exchange(members, self._emit)
        for rank, value in zip(group, exchange.results(), strict=True):
            self.ranks[rank].pass_by(value)

    def _emit(
        self,
        like: Member,
        op: str,
        operands: tuple[NodeId, ...],
        attrs: Mapping[str, Attr],
        made: TensorType,
    ) -> NodeId:
        node = replace(like.node, op=op, operands=operands, attrs=MappingProxyType(dict(attrs)), type=made)
        return self._add(like.rank, node)

    def _add(self, rank: int, node: Node) -> NodeId:
        if len(self.nodes) >= MOST_NODES:
            raise _too_much(f"more than {MOST_NODES} operations")
        name = stem = f"rank{rank}.{node.id}"
        number = 0
        while NodeId(name) in self.nodes:
            number += 1
            name = f"{stem}.{number}"
        self.nodes[NodeId(name)] = replace(node, id=NodeId(name))
        return NodeId(name)

    def _stuck(self, waiting: Mapping[int, tuple[int, ...]]) -> InvalidGraph:
        """Somebody waits for a rank that is elsewhere, or done."""
        rank, other = next(
            (rank, member)
            for rank, group in waiting.items()
            for member in group
            if waiting.get(member) != group
        )
        met = self.ranks[other].node()
        elsewhere = f"waits in {place(met)}" if met else "runs no more collectives"
        return InvalidGraph(
            f"rank {rank}'s {place(cast(Node, self.ranks[rank].node()))} waits for rank {other}, which "
            f"{elsewhere}",
            hint=MEET_HINT,
        )


def _on_rank(node: Node, rank: int) -> Node:
    """What one rank runs: its numbers, its names. What ranks may draw or make on their own is its own."""
    attrs = {name: _settled(value, rank) for name, value in node.attrs.items()}
    op = node.op
    if op == "input":
        attrs["name"] = ranked(str(attrs["name"]), rank)
    elif op == "random":
        attrs["key"] = ranked(str(attrs["key"]), rank)
    elif op == "rank":
        stride, size = cast(int, attrs["stride"]), cast(int, attrs["size"])
        op, attrs = "constant", {"data": (rank // stride % size,)}
    elif op == "opaque":
        if _COMMUNICATES.search(str(attrs["target"])) or str(attrs["config"]).startswith("rank-dependent"):
            raise InvalidGraph(
                f"{place(node)}: {attrs['target']!r} may be a collective, and its meaning is not known",
                hint="use collectives of torch.distributed._functional_collectives",
            )
        if not node.operands:
            attrs["config"] = ranked(str(attrs["config"]), rank)
    return replace(node, op=op, attrs=MappingProxyType(attrs))


def _settled(value: Attr, rank: int) -> Attr:
    if isinstance(value, RankInt):
        return value.at(rank)
    return tuple(_settled(item, rank) for item in value) if isinstance(value, tuple) else value
