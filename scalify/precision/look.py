"""Two programs -> what is found of their precision.

In: a problem. Out: findings, in the order of the candidate; none at once where the candidate knows one
format, and the baseline none finer. They say nothing of equality over the reals, and change no verdict.
"""

from dataclasses import replace

from scalify.ir.graph import DType, Graph
from scalify.precision.finding import PrecisionFinding
from scalify.precision.formats import is_rounding, loses
from scalify.relate.model import Relations


def precision(baseline: Graph, candidate: Graph, relations: Relations) -> tuple[PrecisionFinding, ...]:
    """Where the candidate works in coarser formats than the baseline."""
    formats = _formats(candidate)
    if len(formats) < 2 and not any(loses(own, other) for own in formats for other in _formats(baseline)):
        return ()
    # Programs in one format, which are many, do without what these import.
    from scalify.precision.compare import Comparison, Side
    from scalify.precision.counterparts import counterparts
    from scalify.precision.events import findings

    comparison = Comparison(
        Side.of(baseline), Side.of(candidate), counterparts(baseline, candidate, relations)
    )
    found = findings(comparison, comparison.events(relations.outputs))
    if not found:
        return ()
    from scalify.precision.measure import measured

    return _on_lines(measured(found, baseline, candidate, relations), baseline, candidate)


def _on_lines(
    found: tuple[PrecisionFinding, ...], baseline: Graph, candidate: Graph
) -> tuple[PrecisionFinding, ...]:
    """Findings with the line on which they part from what is computed rightly, as for suspects."""
    from scalify.localize.frames import Lines, line_of

    lines = Lines(baseline, candidate)
    nodes = {node.id: node for node in candidate.nodes}
    # What is found on one line is said once, though it may be found in many nodes.
    stacks = {nodes[finding.candidate.node].stack for finding in found}
    right = [node for node in candidate.nodes if node.stack not in stacks]
    places = (finding.candidate for finding in found)
    sites = (line_of(nodes[place.node], lines.outward(nodes[place.node], right)) for place in places)
    return tuple(
        replace(finding, candidate=replace(finding.candidate, site=site))
        for finding, site in zip(found, sites, strict=True)
    )


def _formats(graph: Graph) -> frozenset[DType]:
    return frozenset(
        node.type.dtype for node in graph.nodes if node.op != "constant" and is_rounding(node.type.dtype)
    )
