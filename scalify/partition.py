"""Cut both graphs into paired regions, each to be proved by itself.

In: two graphs. Out: for each graph the same number of segments, in the order in which they are computed.
A cut lies where few values are alive: between the layers of a model that is the hidden state, and what all
layers share (masks, rotary tables). Where the two graphs offer different numbers of such places, scopes are
asked; where they do not help either, there is one segment. A cut in the wrong place loses a proof (and the
prover then joins regions); it cannot make one.

    hidden --> [ layer 0 ] --> hidden --> [ layer 1 ] --> hidden --> [ head ]
                 mask, cos, sin ------------^
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from scalify.ir.graph import Graph, Node, NodeId

LEAVES = frozenset({"input", "constant", "iota", "rank"})
"""What every region makes for itself: nothing of it crosses a cut, except inputs by name."""

CONTRACTIONS = frozenset({"einsum", "conv", "take", "attention"})

REACH = 12
"""How far around a cut nothing may be quieter, in nodes: shorter segments are not worth an engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Nodes to compute, what they need from earlier segments, and what later ones (or outputs) need of them.

    ``nodes`` hold the leaves they use as well; ``entering`` are values of earlier segments.
    """

    nodes: tuple[Node, ...]
    entering: tuple[NodeId, ...]
    leaving: tuple[NodeId, ...]


def partition(baseline: Graph, candidate: Graph) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Segments of both graphs, pairwise."""
    own, other = computed(baseline), computed(candidate)
    quiet = quiet_places(own), quiet_places(other)
    cuts = _by_contractions(own, quiet[0], other, quiet[1])
    if 2 * len(cuts) < min(len(quiet[0]), len(quiet[1])):
        scoped = scope_places(own), scope_places(other)
        cuts = next(
            (list(zip(*pair, strict=True)) for pair in (quiet, scoped) if len(pair[0]) == len(pair[1])), []
        )
    return (
        segments(own, [cut for cut, _ in cuts], baseline),
        segments(other, [cut for _, cut in cuts], candidate),
    )


def _by_contractions(
    own: Sequence[Node], own_places: Sequence[int], other: Sequence[Node], other_places: Sequence[int]
) -> list[tuple[int, int]]:
    """Places after equally many contractions: a clock that distribution does not change."""
    clocks = [
        {sum(node.op in CONTRACTIONS for node in order[: place + 1]): place for place in reversed(places)}
        for order, places in ((own, own_places), (other, other_places))
    ]
    return [(clocks[0][ticks], clocks[1][ticks]) for ticks in sorted(clocks[0]) if ticks in clocks[1]]


def computed(graph: Graph) -> tuple[Node, ...]:
    """What outputs need, leaves left out, each node as late as the nodes before it allow.

    A post-order walk from the outputs, in the order in which they are computed: graphs that list all
    preparations of weights first have them beside their use.
    """
    nodes = graph.by_id()
    place = {node.id: number for number, node in enumerate(graph.nodes)}
    done: set[NodeId] = set()
    order: list[Node] = []
    for root in sorted((output.value for output in graph.outputs), key=lambda value: place[value]):
        pending = [(root, False)]
        while pending:
            value, ready = pending.pop()
            if value in done:
                continue
            node = nodes[value]
            if ready or node.op in LEAVES:
                done.add(value)
                if node.op not in LEAVES:
                    order.append(node)
                continue
            pending.append((value, True))
            pending.extend((operand, False) for operand in reversed(node.operands))
    return tuple(order)


def quiet_places(order: Sequence[Node]) -> tuple[int, ...]:
    """Positions after which fewer values are alive than anywhere within reach; the first of equals."""
    alive = _alive_after(order)
    places: list[int] = []
    for place in range(REACH, len(alive) - REACH):
        before = alive[max(0, place - REACH) : place]
        after = alive[place + 1 : place + REACH + 1]
        if alive[place] < min(before) and alive[place] <= min(after):
            places.append(place)
    return tuple(places)


def _alive_after(order: Sequence[Node]) -> list[int]:
    """How many computed values are still to be used by later nodes, after each position."""
    last: dict[NodeId, int] = {}
    for place, node in enumerate(order):
        for operand in node.operands:
            last[operand] = place
    change = [0] * (len(order) + 1)
    for place, node in enumerate(order):
        end = last.get(node.id)
        if end is not None:
            change[place] += 1
            change[end] -= 1
    alive: list[int] = []
    count = 0
    for delta in change[: len(order)]:
        count += delta
        alive.append(count)
    return alive


def scope_places(order: Sequence[Node]) -> tuple[int, ...]:
    """Positions after the last node of each numbered scope (``layers.3``), where these come in turn."""
    last: dict[int, int] = {}
    for place, node in enumerate(order):
        numbers = re.findall(r"(?:^|\.)(\d+)(?:\.|$)", node.scope)
        if numbers:
            last[int(numbers[0])] = place
    places = [last[number] for number in sorted(last)]
    return tuple(places[:-1]) if places == sorted(places) else ()


def segments(order: Sequence[Node], cuts: Sequence[int], graph: Graph) -> tuple[Segment, ...]:
    """The graph's nodes between cuts, with the leaves that each segment uses."""
    nodes = graph.by_id()
    bounds = [0, *(cut + 1 for cut in cuts), len(order)]
    home = {
        node.id: number
        for number, (start, stop) in enumerate(itertools.pairwise(bounds))
        for node in order[start:stop]
    }
    wanted = dict.fromkeys(output.value for output in graph.outputs)
    leaving: list[dict[NodeId, None]] = [{} for _ in bounds[1:]]
    parts: list[tuple[tuple[Node, ...], tuple[NodeId, ...]]] = []
    given = [value for value in wanted if value not in home]
    leaving[0].update(dict.fromkeys(given))
    for number, (start, stop) in enumerate(itertools.pairwise(bounds)):
        leaves = dict.fromkeys(given if number == 0 else ())
        entering: dict[NodeId, None] = {}
        for node in order[start:stop]:
            for operand in node.operands:
                origin = home.get(operand)
                if origin is None:
                    leaves[operand] = None
                elif origin != number:
                    entering[operand] = None
                    leaving[origin][operand] = None
            if node.id in wanted:
                leaving[number][node.id] = None
        own = (*(nodes[leaf] for leaf in leaves), *order[start:stop])
        parts.append((own, tuple(entering)))
    return tuple(
        Segment(nodes=own, entering=entering, leaving=tuple(left))
        for (own, entering), left in zip(parts, leaving, strict=True)
    )


def joined(first: Segment, second: Segment, wanted: frozenset[NodeId]) -> Segment:
    """Two neighbouring segments as one; ``wanted`` are the values that anything later (or outside) needs."""
    own = {node.id for node in (*first.nodes, *second.nodes)}
    nodes = {node.id: node for node in (*first.nodes, *second.nodes)}
    entering = dict.fromkeys(value for value in (*first.entering, *second.entering) if value not in own)
    leaving = dict.fromkeys(value for value in (*first.leaving, *second.leaving) if value in wanted)
    return Segment(nodes=tuple(nodes.values()), entering=tuple(entering), leaving=tuple(leaving))
