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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scalify.ir.graph import Graph, Node, NodeId

MADE_OF_NOTHING = frozenset({"constant", "iota", "rank"})
KEPT_APART = frozenset({"input", "random", "opaque"})

CONTRACTIONS = {"einsum": 1, "conv": 1, "take": 1, "attention": 2}
"""Operations by which programs are compared, and how many a composite stands for."""

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
    times = (max(1, candidate.unrolled), max(1, baseline.unrolled))
    cuts = _by_contractions((own, other), quiet, times)
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
    orders: tuple[Sequence[Node], Sequence[Node]],
    places: tuple[Sequence[int], Sequence[int]],
    times: tuple[int, int],
) -> list[tuple[int, int]]:
    """Places with equally many contractions before them, or after them: a clock that neither distribution
    nor what only one program prepares at its start (or adds at its end) changes.

    Ranks that stand side by side contract as often each, so that one of the programs counts several times.
    """
    passed = _contractions(orders[0]), _contractions(orders[1])
    found: list[list[tuple[int, int]]] = []
    for ends in ((0, 0), (passed[0][-1], passed[1][-1])):
        clocks = [
            {(counts[place] - end) * factor: place for place in reversed(quiet)}
            for counts, quiet, end, factor in zip(passed, places, ends, times, strict=True)
        ]
        pairs = [(place, clocks[1][ticks]) for ticks, place in clocks[0].items() if ticks in clocks[1]]
        found.append(sorted(pairs))
    return max(reversed(found), key=len)


def _contractions(order: Sequence[Node]) -> list[int]:
    """How many contractions there are up to each node, itself included; 0 at the end of nothing."""
    return list(itertools.accumulate(CONTRACTIONS.get(node.op, 0) for node in order)) or [0]


def computed(graph: Graph) -> tuple[Node, ...]:
    """What outputs need of inputs, each node as late as the nodes before it allow.

    Inputs are left out, and so is what depends on none (masks, positions): every region makes these for
    itself, for a value that crosses a cut is no longer known but by its name. A post-order walk from the
    outputs, in the order in which they are computed: graphs that list all preparations of weights first have
    them beside their use.
    """
    nodes = graph.by_id()
    leaves = made_of_nothing(graph)
    place = {node.id: number for number, node in enumerate(graph.nodes)}
    done: set[NodeId] = set()
    order: list[Node] = []
    for root in sorted((output.value for output in graph.outputs), key=lambda value: place[value]):
        pending = [(root, False)]
        while pending:
            value, ready = pending.pop()
            if value in done:
                continue
            if value in leaves:
                done.add(value)
            elif ready:
                done.add(value)
                order.append(nodes[value])
            else:
                pending.append((value, True))
                pending.extend((operand, False) for operand in reversed(nodes[value].operands))
    return tuple(order)


def made_of_nothing(graph: Graph) -> frozenset[NodeId]:
    """Inputs, and what depends on none."""
    made: set[NodeId] = set()
    for node in graph.nodes:
        from_nothing = node.op in MADE_OF_NOTHING
        from_made = bool(node.operands) and node.op not in KEPT_APART
        if from_nothing or (from_made and all(operand in made for operand in node.operands)):
            made.add(node.id)
    return frozenset(made) | frozenset(node.id for node in graph.inputs())


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
        own = (*_with_what_they_need(leaves, nodes), *order[start:stop])
        parts.append((own, tuple(entering)))
    return tuple(
        Segment(nodes=own, entering=entering, leaving=tuple(left))
        for (own, entering), left in zip(parts, leaving, strict=True)
    )


def _with_what_they_need(leaves: Iterable[NodeId], nodes: Mapping[NodeId, Node]) -> tuple[Node, ...]:
    """Leaves and all that they are made of, operands first."""
    done: dict[NodeId, Node] = {}
    pending = [(leaf, False) for leaf in reversed(list(leaves))]
    while pending:
        value, ready = pending.pop()
        if value in done:
            continue
        if ready or not nodes[value].operands:
            done[value] = nodes[value]
        else:
            pending.append((value, True))
            pending.extend((operand, False) for operand in reversed(nodes[value].operands))
    return tuple(done.values())


def joined(first: Segment, second: Segment, wanted: frozenset[NodeId]) -> Segment:
    """Two neighbouring segments as one; ``wanted`` are the values that anything later (or outside) needs."""
    own = {node.id for node in (*first.nodes, *second.nodes)}
    nodes = {node.id: node for node in (*first.nodes, *second.nodes)}
    entering = dict.fromkeys(value for value in (*first.entering, *second.entering) if value not in own)
    leaving = dict.fromkeys(value for value in (*first.leaving, *second.leaving) if value in wanted)
    return Segment(nodes=tuple(nodes.values()), entering=tuple(entering), leaving=tuple(leaving))
