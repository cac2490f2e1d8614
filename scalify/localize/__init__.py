"""Where a candidate goes wrong: the first node that is not its counterpart although its operands are.

In: a region that was not proved and what an engine found of it. Out: a suspect with its counterpart, what
is known of its operands, what was needed, and the likely mistake. A suspect is a place to look at, not a
proof of a difference: Unknown stays Unknown.
"""

from dataclasses import replace

from scalify.ir.graph import Graph
from scalify.localize.explain import explain, extent_of
from scalify.localize.first import first, scene_of, under_suspicion
from scalify.prove.engine import Budget
from scalify.prove.region import Region, RegionProof
from scalify.verdict import Suspect

BUDGET = Budget(duration_s=20.0)
"""What an engine may spend on the values that the proof did not look at."""


def localize(
    region: Region, proof: RegionProof, baseline: Graph, candidate: Graph, budget: Budget = BUDGET
) -> Suspect | None:
    """The node to look at first in a region that was not proved."""
    scene = scene_of(region, proof, baseline, candidate, budget)
    under = under_suspicion(scene)
    finding = first(scene, under)
    if finding is None:
        return None
    suspect = explain(scene, finding)
    return replace(suspect, extent=extent_of(scene, under)) if under else suspect


__all__ = ["localize"]
