"""Elements that the candidate has no value for, and whether masks excuse that.

A row of attention in which everything is masked has no meaning: what one program fills with a very low number
and another with infinity is a matter of taste, although the second has no value there. It is no matter of
taste where the rows are not masked: masked numbers that are merely low, and not infinite, then leave the
baseline as it is, and give the candidate a value; if that is another one than the baseline's, whatever the
level, the candidate is another program.
"""

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from scalify.errors import OutOfRange
from scalify.ir.graph import Graph
from scalify.ir.ops.spec import Array
from scalify.refute.certain import rounding
from scalify.refute.compare import Compared, compared
from scalify.refute.constants import masking, with_level
from scalify.refute.overflow import Overflow
from scalify.refute.pair import Pair
from scalify.refute.run import run
from scalify.verdict import Draw

LEVELS = (1024.0, 2048.0)
"""Exponentials of minus that are zero, and noise in it does not drown what is added to it."""


def inexcusable(pair: Pair, draw: Draw, one: Compared) -> Compared:
    """Without those elements that may have no value because they are masked."""
    certain = one.nothing
    for level in LEVELS:
        certain = certain & _differs(_at(pair, level), draw, one) if certain.any() else certain
    return replace(one, nothing=certain, apart=certain)


def can_tell(pair: Pair) -> bool:
    """Whether all masking is by numbers that the programs hold: that of attention as one operation is not."""
    graphs = pair.baseline, pair.candidate
    return bool(masking(pair.candidate)) and not any(
        node.op == "attention" for graph in graphs for node in graph.nodes
    )


def _differs(pair: Pair, draw: Draw, one: Compared) -> Array:
    """Where the candidate has another value than the baseline, and that is what it was with infinity."""
    nowhere = np.zeros(one.apart.shape, dtype=np.bool_)
    given, own = pair.given(draw)
    over = Overflow()
    try:
        outputs = run(pair.baseline, given, draw), run(pair.candidate, own, draw, over.seen)
    except OutOfRange:
        return nowhere
    bounds = (
        rounding(pair.baseline, given, draw, outputs[0], garbage=True),
        rounding(pair.candidate, own, draw, outputs[1]),
    )
    other = compared(one.relation, outputs, bounds, overflowed=True)
    if over.excuses:
        return nowhere
    with np.errstate(all="ignore"):
        stays = np.abs(other.expected - one.expected) <= one.uncertainty + other.uncertainty
    return other.apart & stays


def _at(pair: Pair, level: float) -> Pair:
    return replace(pair, baseline=_masked(pair.baseline, level), candidate=_masked(pair.candidate, level))


def _masked(graph: Graph, level: float) -> Graph:
    """The graph with numbers of one size where it masks."""
    chosen = masking(graph)
    return replace(
        graph,
        nodes=tuple(
            replace(node, attrs=MappingProxyType({**node.attrs, "data": with_level(node, level)}))
            if node.id in chosen
            else node
            for node in graph.nodes
        ),
    )
