"""From Unknown to Refuted, where values show it.

In: two graphs, their relations, and what a proof that failed has to say. Out: Refuted with a witness, or
Unknown as it was. Outputs that were proved are not compared again.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from math import prod

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Graph
from scalify.ir.ops.spec import Array
from scalify.localize.by_values import locate
from scalify.refute.budget import Search
from scalify.refute.compare import difference, summary
from scalify.refute.draw import Input
from scalify.refute.lead import affordable, lead
from scalify.refute.pair import Pair, pair_of
from scalify.refute.search import Found, search
from scalify.refute.unknown import runnable, unwritten
from scalify.relate.model import Relations
from scalify.verdict import GivenValue, Reason, Refuted, Unknown, Verdict, Witness

MOST_VALUES = 16
"""Inputs of so few elements are written into a witness as they are."""

SOON_S = 10.0

TOO_LARGE = "values were not searched: running the programs takes more than the memory limit"

_WORTH_IT = (Reason.UNPROVED, Reason.UNKNOWN_OPS, Reason.BUDGET, Reason.UNCHECKED)


def refute(
    baseline: Graph, candidate: Graph, relations: Relations, verdict: Unknown, budget: Search
) -> Verdict:
    """Look for values on which outputs that were not proved differ."""
    proved = {output.candidate for output in verdict.outputs if output.layout is not None}
    asked = tuple(each for each in relations.outputs if each.candidate not in proved)
    if verdict.reason not in _WORTH_IT or not asked:
        return verdict
    pair = pair_of(baseline, candidate, relations)
    if not affordable(pair, budget):
        return replace(verdict, lead=lead(pair, budget))
    try:
        sought = search(pair, asked, budget)
    except MemoryError:
        return replace(verdict, missing=(*verdict.missing, TOO_LARGE))
    if sought.found is None:
        return verdict
    given = pair.given(sought.found.draw)
    return Refuted(
        outputs=verdict.outputs,
        assumptions=verdict.assumptions,
        witness=witness(pair, sought.found),
        suspect=locate(runnable(baseline), runnable(candidate), relations, given, verdict.suspect),
        work=verdict.work,
    )


def differ(baseline: Graph, candidate: Graph, relations: Relations) -> bool:
    """Whether programs that are soon run differ on the first values that come to mind.

    Then nothing proves them equal, and nothing more needs to be tried.
    """
    pair = pair_of(baseline, candidate, relations)
    soon = Search(duration_s=SOON_S, draws=2)
    try:
        return affordable(pair, soon) and search(pair, relations.outputs, soon).found is not None
    except MemoryError:
        return False


def witness(pair: Pair, found: Found) -> Witness:
    """What was found, to be kept."""
    given, _ = pair.given(found.draw)
    ordered = sorted(found.differing, key=lambda each: each.differing / max(each.counted, 1), reverse=True)
    free = [str(node.attrs["name"]) for node in pair.candidate.inputs() if node.id in pair.free]
    return Witness(
        draw=found.draw,
        given=tuple(_given(each, given[each.name]) for each in pair.inputs()),
        difference=difference(ordered[0]),
        outputs=tuple(summary(each) for each in ordered),
        free=(*free, *unwritten(pair.candidate)),
        beyond=found.beyond,
    )


def _given(input: Input, values: PerRank) -> GivenValue:
    return GivenValue(
        name=input.name,
        dtype=input.type.dtype,
        shape=input.type.shape,
        role=input.role,
        domain=input.domain,
        sha256=digest(values),
        values=_values(values),
    )


def digest(values: Sequence[Array]) -> str:
    """Of the elements on all ranks, little-endian, in row-major order."""
    whole = sha256()
    for value in values:
        whole.update(np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<")).tobytes())
    return whole.hexdigest()


def _values(values: PerRank) -> tuple[float, ...] | None:
    if len(values) > 1 or prod(values[0].shape) > MOST_VALUES or values[0].dtype.kind == "c":
        return None
    return tuple(float(each) for each in values[0].ravel())
