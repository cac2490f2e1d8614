"""What values tell of a suspect, in sentences."""

from collections.abc import Sequence
from dataclasses import replace

from scalify.ir.graph import Node
from scalify.localize.explain import explain
from scalify.localize.first import Finding, Scene
from scalify.localize.values.repair import Repair
from scalify.localize.values.standings import Values
from scalify.verdict import Suspect


def said(
    scene: Scene,
    finding: Finding,
    values: Values,
    suspicious: Sequence[Node],
    *,
    mended: bool,
    repair: Repair | None = None,
) -> Suspect:
    """The suspect with everything that is known."""
    suspect = explain(scene, finding)
    guess = suspect.guess
    if repair is not None:
        guess = f"{guess + '; ' if guess else ''}the outputs are right with {repair.text}"
    return replace(suspect, mended=mended, guess=guess)
