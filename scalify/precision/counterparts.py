"""Which node of the baseline each node of the candidate stands for, in whole programs."""

from collections.abc import Mapping
from dataclasses import dataclass

from scalify.ir.graph import Graph, NodeId
from scalify.localize.align import align
from scalify.partition import partition
from scalify.relate.model import Relations


@dataclass(frozen=True, slots=True)
class Counterparts:
    """``of`` candidate nodes; ``inherited`` are those that have theirs from their operand, ``sure`` those
    that the same source made."""

    of: Mapping[NodeId, NodeId]
    inherited: frozenset[NodeId]
    sure: frozenset[NodeId]


def counterparts(baseline: Graph, candidate: Graph, relations: Relations) -> Counterparts:
    """Aligned segment by segment: what is known of one's results is where the next starts."""
    found: dict[NodeId, NodeId] = {
        relation.candidate: relation.parts[0].baseline for relation in relations.inputs if relation.parts
    }
    inherited: set[NodeId] = set()
    sure: set[NodeId] = set()
    for own, other in zip(*partition(baseline, candidate), strict=True):
        held = {node.id for node in other.nodes if node.op == "input"} | {*other.entering}
        aligned = align(own.nodes, other.nodes, {value: found[value] for value in held if value in found})
        found.update(aligned.counterpart)
        inherited.update(aligned.inherited)
        sure.update(aligned.sure)
    given = {node.id for node in candidate.inputs()}
    return Counterparts(found, frozenset(inherited - given), frozenset(sure | given))
