"""How much precision is lost: both programs in their declared dtypes, beside themselves in float64.

In: findings. Out: the same, with the error at their places. One draw of numbers as models have them, rounded
to what the baseline's inputs can hold; each operation's result is rounded once. A sum over ranks that rounds
at every step, as hardware may, loses more than this says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalify.errors import ScalifyError
from scalify.ir.evaluate import PerRank, evaluate
from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.meaning.storage import rounded
from scalify.precision.finding import PrecisionError, PrecisionFinding
from scalify.refute.cost import products
from scalify.refute.place import on_ranks
from scalify.relate.model import Relations

Array = NDArray[Any]

SEED = 0
MOST_ELEMENTS = 2_000_000
"""Of all values on all ranks together: running both programs twice then takes about a second."""

MOST_PRODUCTS = 200_000_000


def measured(
    findings: Sequence[PrecisionFinding], baseline: Graph, candidate: Graph, relations: Relations
) -> tuple[PrecisionFinding, ...]:
    """With errors, where the programs are small and can be run."""
    own = {finding.candidate.node for finding in findings}
    given = {finding.baseline.node for finding in findings if finding.baseline is not None}
    if relations.free or not (_is_small(baseline) and _is_small(candidate)):
        return tuple(findings)
    try:
        values = _values(baseline)
        errors = (
            _errors(baseline, {name: [value] for name, value in _by_name(baseline, values).items()}, given),
            _errors(candidate, _by_name(candidate, _held(candidate, values, relations)), own),
        )
    except ScalifyError:  # nothing can be said where an operation has no meaning, or an index finds no row
        return tuple(findings)
    return tuple(_with_error(finding, *errors) for finding in findings)


def _with_error(
    finding: PrecisionFinding, given: Mapping[NodeId, float], own: Mapping[NodeId, float]
) -> PrecisionFinding:
    baseline = None if finding.baseline is None else given.get(finding.baseline.node)
    error = PrecisionError(baseline=baseline, candidate=own.get(finding.candidate.node))
    return (
        finding if error == PrecisionError(baseline=None, candidate=None) else replace(finding, error=error)
    )


def _is_small(graph: Graph) -> bool:
    if graph.unrolled:
        return False
    elements = sum(prod(node.type.shape) for node in graph.nodes) * graph.mesh.size
    shapes = {node.id: node.type.shape for node in graph.nodes}
    multiplied = sum(
        products(node, [shapes[operand] for operand in node.operands])
        for node in graph.nodes
        if node.op == "einsum"
    )
    return elements <= MOST_ELEMENTS and multiplied * graph.mesh.size <= MOST_PRODUCTS


def _values(baseline: Graph) -> dict[NodeId, Array]:
    """Weights as wide as keeps activations of size 1, everything else of size 1; whole numbers are 0 or 1."""
    rng = np.random.default_rng(SEED)
    found: dict[NodeId, Array] = {}
    for node in baseline.inputs():
        shape, kind = node.type.shape, KIND_OF[node.type.dtype]
        if kind in ("int", "bool"):
            found[node.id] = rng.integers(0, 2, shape).astype(np.int64 if kind == "int" else np.bool_)
            continue
        wide = len(shape) > 1 and node.attrs.get("role") == "parameter"
        numbers = rng.standard_normal(shape) / (np.sqrt(max(shape, default=1)) if wide else 1)
        found[node.id] = rounded(numbers.astype(complex if kind == "complex" else float), node.type.dtype)
    return found


def _held(
    candidate: Graph, values: Mapping[NodeId, Array], relations: Relations
) -> dict[NodeId, list[Array]]:
    """What the candidate's ranks hold of the baseline's values."""
    held = on_ranks(relations.inputs, {value: array[None] for value, array in values.items()})
    missing = [node.id for node in candidate.inputs() if node.id not in held]
    if missing:
        raise ScalifyError(f"nothing is known of {missing[0]}", hint="state its relation")
    return held


def _by_name(graph: Graph, values: Mapping[NodeId, Any]) -> dict[str, Any]:
    return {str(node.attrs["name"]): values[node.id] for node in graph.inputs()}


def _errors(graph: Graph, inputs: Mapping[str, Sequence[Array]], wanted: set[NodeId]) -> dict[NodeId, float]:
    """The relative error of each wanted value, over all ranks."""
    exact, found = (_seen(graph, inputs, wanted, declared=declared) for declared in (False, True))
    return {
        value: error
        for value in wanted
        if (error := _relative(np.stack(found[value]), np.stack(exact[value]))) is not None
    }


def _seen(
    graph: Graph, inputs: Mapping[str, Sequence[Array]], wanted: set[NodeId], *, declared: bool
) -> dict[NodeId, PerRank]:
    kept: dict[NodeId, PerRank] = {}

    def seen(node: Node, results: PerRank) -> PerRank:
        if node.id in wanted:
            kept[node.id] = results
        return results

    evaluate(graph, inputs, declared=declared, seen=seen)
    return kept


def _relative(found: Array, exact: Array) -> float | None:
    """Over the elements that are finite in both, root of the mean square beside that of the exact ones."""
    finite = np.isfinite(found) & np.isfinite(exact)
    size = float(np.sqrt(np.mean(np.abs(exact[finite]) ** 2))) if finite.any() else 0.0
    if size == 0.0:
        return None
    return float(np.sqrt(np.mean(np.abs(found[finite] - exact[finite]) ** 2))) / size
