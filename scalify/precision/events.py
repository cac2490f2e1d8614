"""Events -> findings: one for each mistake, in a sentence, not one for each value that suffers from it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from scalify.ir.graph import NodeId
from scalify.ir.mesh import Groups, Mesh, groups_along
from scalify.localize.explain import place_of
from scalify.precision.compare import Comparison, Event
from scalify.precision.finding import Kind, PrecisionFinding
from scalify.precision.formats import loses

GRADIENT = "grad."
"""What outputs are called that are gradients (``scalify capture --backward``)."""


def findings(comparison: Comparison, events: Iterable[Event]) -> tuple[PrecisionFinding, ...]:
    """In the order of the candidate; those of one line, in all layers, as one."""
    order = {node.id: place for place, node in enumerate(comparison.candidate.graph.nodes)}
    told = sorted(_merged(comparison, list(events)), key=lambda event: order[event.node])
    found: dict[object, PrecisionFinding] = {}
    for event in told:
        finding = _finding(comparison, event)
        key = (event.kind, finding.candidate.site or finding.candidate.node, finding.expected, finding.found)
        known = found.get(key)
        found[key] = finding if known is None else replace(known, times=known.times + 1)
    return tuple(found.values())


def _merged(comparison: Comparison, events: Sequence[Event]) -> list[Event]:
    """One event a node. Of what is computed from each other in the coarser format, the first is told, and the
    sums: what else suffers from it, or leads to a sum, is the same mistake."""
    by_node: dict[NodeId, Event] = {}
    for event in sorted(events, key=lambda event: _WEIGHT[event.kind]):
        by_node.setdefault(event.node, event)
    before = {node: _operands(comparison, node) & by_node.keys() for node in by_node}
    to_sums = {
        each
        for node, event in by_node.items()
        if event.kind in (Kind.STATISTICS, Kind.ROUNDED_TERMS)
        for each in before[node]
    }
    return [
        event
        for node, event in by_node.items()
        if event.kind is not Kind.ROUNDED or not (before[node] or node in to_sums)
    ]


def _operands(comparison: Comparison, value: NodeId) -> set[NodeId]:
    """What a node's operands were computed by, and where they were rounded since."""
    ways = comparison.candidate.ways
    found: set[NodeId] = set()
    for operand in comparison.candidate.nodes[value].operands:
        for way in ways[operand].by_source.values():
            found |= {way.source, *(rounding.node for rounding in way.roundings)}
    return found - {value}


_WEIGHT = {kind: weight for weight, kind in enumerate(Kind)}


def _finding(comparison: Comparison, event: Event) -> PrecisionFinding:
    node = comparison.candidate.nodes[event.node]
    given = None if event.given is None else comparison.baseline.nodes[event.given]
    return PrecisionFinding(
        kind=event.kind,
        candidate=place_of(node),
        baseline=None if given is None else place_of(given),
        expected=event.expected,
        found=event.found,
        text=_TEXTS[event.kind](comparison, event),
    )


def _ranks_sum(comparison: Comparison, event: Event) -> str:
    node = comparison.candidate.nodes[event.node]
    what = "this gradient is summed" if _is_gradient(comparison, event.node) else f"this {node.op} sums"
    over = _over(comparison.candidate.graph.mesh, node.attrs["groups"])
    given = comparison.baseline.dtype(event.given) if event.given else event.expected
    wanted = (
        f"where the baseline sums in {event.expected}"
        if given == event.expected
        else f"although its result is handed out in {event.expected}"
    )
    text = f"{what} over {over} in {event.found} {wanted}"
    after = _widened_after(comparison, event)
    return f"{text}: cast to {event.expected} before it instead of after it" if after else text


def _is_gradient(comparison: Comparison, value: NodeId) -> bool:
    ways = comparison.candidate.ways
    outputs = comparison.candidate.graph.outputs
    return any(each.name.startswith(GRADIENT) and value in ways[each.value].by_source for each in outputs)


def _widened_after(comparison: Comparison, event: Event) -> bool:
    """Whether a cast to the format that was wanted stands behind the node."""
    ways = comparison.candidate.ways
    return any(
        node.op == "cast" and not loses(node.type.dtype, event.expected)
        and event.node in ways[node.operands[0]].by_source
        for node in comparison.candidate.graph.nodes
    )  # fmt: skip


def _over(mesh: Mesh, groups: object) -> str:
    names = tuple(name for name, _ in mesh.axes)
    for name in names:
        if groups == groups_along(mesh, (name,)):
            return name
    return " and ".join(names) if _is_all(mesh, groups) else "groups of ranks"


def _is_all(mesh: Mesh, groups: object) -> bool:
    whole: Groups = (tuple(range(mesh.size)),)
    return groups == whole


def _rounded_terms(comparison: Comparison, event: Event) -> str:
    reader = comparison.candidate.nodes[event.reader] if event.reader else None
    name = reader.op if reader else "the sum"
    return (
        f"each rank's term is rounded to {event.found} before {name} adds them up; the baseline adds up in "
        f"{event.expected}"
    )


def _statistics(comparison: Comparison, event: Event) -> str:
    op = comparison.candidate.nodes[event.node].op
    what = f"this {comparison.candidate.nodes[event.node].attrs['kind']}" if op == "reduce" else f"this {op}"
    return f"{what} is taken in {event.found} where the baseline takes it in {event.expected}"


def _held(comparison: Comparison, event: Event) -> str:
    name = comparison.candidate.nodes[event.node].attrs.get("name", event.node)
    return f"{name} is held in {event.found} where the baseline reads it in {event.expected}"


def _rounded(comparison: Comparison, event: Event) -> str:
    node = comparison.candidate.nodes[event.node]
    reader = comparison.candidate.nodes[event.reader].op if event.reader else "the output"
    source = comparison.candidate.ways[event.node].by_source
    inputs = [value for value in source if comparison.candidate.nodes[value].op == "input"]
    name = comparison.candidate.nodes[inputs[0]].attrs["name"] if inputs else None
    what = f"{name} is rounded" if name else "this value is rounded"
    how = "by this cast" if node.op == "cast" else f"by this {node.op}"
    before = f"{what} to {event.found} {how} before {reader} reads it"
    return f"{before}; the baseline reads it in {event.expected}"


def _rounded_twice(comparison: Comparison, event: Event) -> str:
    del comparison
    return f"rounded to {event.found} here and to {event.expected} after it; the baseline rounds only once"


def _mixed_norm(comparison: Comparison, event: Event) -> str:
    op = comparison.candidate.nodes[event.node].op
    return (
        f"this {op} has an activation in {event.found} and a weight in {event.expected}: an ill-typed use of "
        f"a fused operation, which reads both in one dtype"
    )


_TEXTS = {
    Kind.RANKS_SUM: _ranks_sum,
    Kind.ROUNDED_TERMS: _rounded_terms,
    Kind.STATISTICS: _statistics,
    Kind.HELD: _held,
    Kind.ROUNDED: _rounded,
    Kind.ROUNDED_TWICE: _rounded_twice,
    Kind.MIXED_NORM: _mixed_norm,
}
