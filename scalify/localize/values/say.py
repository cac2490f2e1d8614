"""What values tell of a suspect, in sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from scalify.ir.graph import Node, NodeId
from scalify.localize.align import LEAVES
from scalify.localize.explain import explain
from scalify.localize.first import Finding, Scene
from scalify.localize.frames import Lines, in_counterpart, line_of
from scalify.localize.text import relation_text
from scalify.localize.values.alike import same
from scalify.localize.values.repair import Repair
from scalify.localize.values.standings import Values
from scalify.verdict import Suspect


def said(
    scene: Scene,
    finding: Finding,
    values: Values,
    *,
    before: Suspect | None = None,
    mended: bool = False,
    repair: Repair | None = None,
    innocent: Sequence[Node] = (),
) -> Suspect:
    """The suspect with everything that is known. ``before`` is that of the proof, which knows its extent.

    ``innocent`` nodes clear the lines by which they came.
    """
    suspect = _at_its_line(explain(scene, finding), scene, finding.node, innocent)
    guess = suspect.guess
    if repair is not None:
        guess = f"{guess + '; ' if guess else ''}the outputs are right with {repair.text}"
    return replace(
        suspect,
        mended=mended,
        guess=guess,
        needed="" if repair is not None and suspect.baseline is None else suspect.needed,
        derivable=tuple(_derivable(scene, finding.node.id, values)),
        extent=None if before is None else before.extent,
    )


def _at_its_line(suspect: Suspect, scene: Scene, node: Node, innocent: Sequence[Node]) -> Suspect:
    depth = Lines(scene.baseline, scene.candidate).outward(node, innocent)
    given = scene.counterpart(node.id)
    if not depth:
        return suspect
    baseline = suspect.baseline
    if baseline is not None and given is not None:
        baseline = replace(baseline, site=line_of(given, in_counterpart(node, given, depth)))
    return replace(
        suspect, candidate=replace(suspect.candidate, site=line_of(node, depth)), baseline=baseline
    )


def _derivable(scene: Scene, node: NodeId, values: Values) -> Iterator[str]:
    """In which ways the value is the baseline's, if not in the one that is needed."""
    counterpart = scene.alignment.counterpart.get(node)
    if node not in values.candidate.values:
        yield "it has no value: the candidate reads a row that its table does not have"
        return
    if counterpart is None or counterpart not in values.baseline.values:
        return
    measured = values.measured(node, counterpart)
    if measured.factor is not None:
        yield f"it is {measured.factor:.6g} times the baseline's {counterpart}"
    elif measured.added is not None:
        yield f"it is the baseline's {counterpart} plus {measured.added:g}"
    elif measured.moved:
        order = "in another order" if measured.reading is None else measured.reading.text
        yield f"it holds the numbers of the baseline's {counterpart}, {order}"
    elif measured.standing.is_related:
        yield f"it is {relation_text(measured.standing)}"
    else:
        yield _other(node, counterpart, values)


def _other(node: NodeId, counterpart: NodeId, values: Values) -> str:
    """Which value of the baseline it is instead, if it is any."""
    own = values.candidate.values[node]
    for other in values.baseline.graph.nodes:
        given = values.baseline.values.get(other.id)
        if given is None or other.op in LEAVES or given[0].dtype.kind != own[0].dtype.kind:
            continue
        for reading in values.readings(node, other.id):
            if reading.is_plain and same(own, reading.of(given), values.slack(other.id)):
                return f"it is the baseline's {other.id} instead of its {counterpart}"
    return f"it holds other numbers than the baseline's {counterpart}"
