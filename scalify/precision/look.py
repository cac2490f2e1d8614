"""Two programs -> what is found of their precision.

In: a problem. Out: findings, in the order of the candidate; none at once where the candidate knows one
format, and the baseline none finer. They say nothing of equality over the reals, and change no verdict.
"""

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

    return measured(found, baseline, candidate, relations)


def _formats(graph: Graph) -> frozenset[DType]:
    return frozenset(
        node.type.dtype for node in graph.nodes if node.op != "constant" and is_rounding(node.type.dtype)
    )
