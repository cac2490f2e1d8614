"""What values tell of a suspect, in sentences."""

from collections.abc import Sequence
from dataclasses import replace

from scalify.ir.graph import Node
from scalify.localize.explain import explain
from scalify.localize.first import Finding, Scene
from scalify.localize.values.standings import Values
from scalify.verdict import Suspect


def said(
    scene: Scene, finding: Finding, values: Values, suspicious: Sequence[Node], *, mended: bool
) -> Suspect:
    """The suspect with everything that is known."""
    return replace(explain(scene, finding), mended=mended)
