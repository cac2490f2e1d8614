"""What one rank sends and another receives: matched up, once the programs of all ranks are there.

In the graph of one rank a message is an opaque node that names the peer. Of two ranks the first one sent is
the first received, for each tag. Where all ranks run one program, as around a ring, its messages become a
``permute``; elsewhere ranks are put side by side, and a receiver has the sender's own value.
"""

import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from scalify.errors import InvalidGraph
from scalify.ir.check import place
from scalify.ir.graph import Attr, Graph, Node, NodeId, TensorType
from scalify.ir.mesh import Groups
from scalify.ir.ops import OPS

SEND, RECEIVE = "scalify.send", "scalify.recv"
HINT = "every message that is sent is received, in the order in which it was sent"


@dataclass(frozen=True, slots=True)
class Message:
    """Whom a node of a rank sends to or receives from, under which tag.

    ``groups``: those within which an all-to-all exchanges it, apart from what is sent by itself.
    """

    source: int
    target: int
    tag: int
    groups: str = ""


def message_config(peer: int, tag: int, groups: Groups | None = None) -> str:
    """What a node that sends or receives says of it. With groups, ``peer`` is a place in the rank's own."""
    stated = {"peer": peer, "tag": tag}
    return json.dumps(stated if groups is None else {**stated, "groups": groups})


def message_of(node: Node, rank: int) -> Message | None:
    """What a node of this rank sends or receives, if it does either."""
    if node.op != "opaque" or node.attrs["target"] not in (SEND, RECEIVE):
        return None
    stated = json.loads(str(node.attrs["config"]))
    if not isinstance(stated, dict) or not all(type(stated.get(key)) is int for key in ("peer", "tag")):
        raise InvalidGraph(f"{place(node)}: it is not said whom it meets", hint="capture it again")
    peer, tag = int(stated["peer"]), int(stated["tag"])
    within = json.dumps(stated["groups"]) if "groups" in stated else ""
    if within:
        peer = _member(node, stated["groups"], rank, peer)
    sends = node.attrs["target"] == SEND
    return Message(rank, peer, tag, within) if sends else Message(peer, rank, tag, within)


def _member(node: Node, groups: object, rank: int, position: int) -> int:
    """The rank at a place of the group that this rank is in."""
    for group in groups if isinstance(groups, list) else ():
        if isinstance(group, list) and rank in group and 0 <= position < len(group):
            member = group[position]
            if type(member) is int:
                return member
    raise InvalidGraph(
        f"{place(node)}: no group of rank {rank} has a member {position}", hint="capture it again"
    )


def is_message(node: Node) -> bool:
    """Whether a node sends or receives."""
    return node.op == "opaque" and node.attrs["target"] in (SEND, RECEIVE)


def exchanged(graphs: Mapping[int, Graph]) -> Mapping[int, Graph]:
    """The same programs, messages being ``permute`` where all ranks send and receive at the same places."""
    kinds = [[(node.op, node.attrs.get("target")) for node in graph.nodes] for graph in graphs.values()]
    has_messages = any(map(is_message, graphs[0].nodes))
    if not has_messages or any(one != kinds[0] for one in kinds[1:]):
        return graphs
    sent = _sent(graphs)
    received = _matched(graphs, sent)
    if received is None:
        return graphs
    return {rank: _permuting(graph, received) for rank, graph in graphs.items()}


def _sent(graphs: Mapping[int, Graph]) -> dict[Message, deque[int]]:
    """By message, the places of the nodes that send it, first ones first."""
    sent: dict[Message, deque[int]] = defaultdict(deque)
    for rank, graph in graphs.items():
        for at, node in enumerate(graph.nodes):
            message = message_of(node, rank)
            if message is not None and node.attrs["target"] == SEND:
                sent[message].append(at)
    return sent


def _matched(
    graphs: Mapping[int, Graph], sent: dict[Message, deque[int]]
) -> dict[int, tuple[int, tuple[tuple[int, int], ...]]] | None:
    """For the place of each receiving node, that of the sending ones, and who sends to whom."""
    found: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = {}
    for at, node in enumerate(graphs[0].nodes):
        if not is_message(node) or node.attrs["target"] != RECEIVE:
            continue
        messages = [message_of(graph.nodes[at], rank) for rank, graph in graphs.items()]
        known = [message for message in messages if message is not None and sent.get(message)]
        places = {sent[message].popleft() for message in known}
        if len(known) != len(messages) or len(places) != 1:
            return None
        found[at] = places.pop(), tuple(sorted((message.source, message.target) for message in known))
    return None if any(sent.values()) else found


def _permuting(graph: Graph, received: Mapping[int, tuple[int, tuple[tuple[int, int], ...]]]) -> Graph:
    nodes: list[Node] = []
    for at, node in enumerate(graph.nodes):
        if at in received:
            source, pairs = received[at]
            operands = graph.nodes[source].operands
            attrs: Mapping[str, Attr] = MappingProxyType({"pairs": pairs})
            nodes.append(replace(node, op="permute", operands=operands, attrs=attrs))
        elif not is_message(node):
            nodes.append(node)
    return replace(graph, nodes=_in_order(nodes))


def _in_order(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Each after what it depends on: a message may be awaited before what is sent is made."""
    known = {node.id for node in nodes}
    done: set[NodeId] = set()
    left, ordered = list(nodes), list[Node]()
    while left:
        late = [node for node in left if not _settle(node, known, done, ordered)]
        if len(late) == len(left):
            raise InvalidGraph(f"{place(late[0])} waits for what depends on it", hint=HINT)
        left = late
    return tuple(ordered)


def _settle(node: Node, known: set[NodeId], done: set[NodeId], ordered: list[Node]) -> bool:
    if any(operand in known and operand not in done for operand in node.operands):
        return False
    done.add(node.id)
    ordered.append(node)
    return True


def patient(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """A rank's nodes, what it receives as late as possible: it is waited for when it is used.

    The order of collectives, and of what is sent, stays.
    """
    ordered, held = list[Node](), list[Node]()
    behind: set[NodeId] = set()
    for node in nodes:
        waits = any(operand in behind for operand in node.operands)
        receives = is_message(node) and node.attrs["target"] == RECEIVE
        if waits and (OPS[node.op].across is not None or is_message(node)):
            ordered += [*held, node]
            held, behind = [], set()
        elif waits or receives:
            held.append(node)
            behind.add(node.id)
        else:
            ordered.append(node)
    return (*ordered, *held)


@dataclass(slots=True)
class Mail:
    """What is on its way between ranks that run side by side."""

    _sent: dict[Message, deque[tuple[NodeId, TensorType]]]

    @classmethod
    def empty(cls) -> "Mail":
        """Nothing was sent yet."""
        return cls(defaultdict(deque))

    def send(self, message: Message, value: NodeId, type_: TensorType) -> None:
        """A value leaves."""
        self._sent[message].append((value, type_))

    def receive(self, message: Message, node: Node) -> NodeId | None:
        """The value that arrives at a node, if it was sent already."""
        waiting = self._sent.get(message)
        if not waiting:
            return None
        value, type_ = waiting.popleft()
        if type_ != node.type:
            raise InvalidGraph(
                f"{place(node)} of rank {message.target} receives {type_.dtype}{list(type_.shape)} from rank "
                f"{message.source}, and takes {node.type.dtype}{list(node.type.shape)}",
                hint="receive into a tensor like the one that is sent",
            )
        return value

    def check_empty(self) -> None:
        """Raise InvalidGraph where something was sent that nobody received."""
        lost = next((message for message, values in self._sent.items() if values), None)
        if lost is not None:
            raise InvalidGraph(
                f"rank {lost.target} does not receive what rank {lost.source} sends to it", hint=HINT
            )
