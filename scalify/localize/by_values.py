"""The first node of the candidate that holds something else than it should, and that mends the outputs.

In: both programs, inputs on which they differ, and the suspect that a proof left, if any. Out: the suspect
confirmed by values where there is one, else the one that was given.

A node is *right* if each rank holds what it should of its counterpart, whole, in blocks, or still to be
combined. Of those that are not, and on which a wrong output depends, the first whose operands are right comes
first. The proof of the pudding: with the right value in its place the outputs must come out right.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Graph, NodeId
from scalify.localize.align import LEAVES, Alignment
from scalify.localize.first import Finding, Scene, Why, among_results
from scalify.localize.frames import Lines
from scalify.localize.values.follow import follow
from scalify.localize.values.hunt import Found, Hunt
from scalify.localize.values.kept import kept, size_bytes
from scalify.localize.values.repair import repaired
from scalify.localize.values.say import said
from scalify.localize.values.standings import Values
from scalify.localize.values.trial import Trials
from scalify.prove.region import Goal
from scalify.relate.model import Relations
from scalify.verdict import Suspect

MOST_BYTES = 1 << 30

Inputs = tuple[Mapping[str, PerRank], Mapping[str, PerRank]]


def locate(
    baseline: Graph,
    candidate: Graph,
    relations: Relations,
    inputs: Inputs,
    suspect: Suspect | None = None,
    *,
    most_bytes: int = MOST_BYTES,
) -> Suspect | None:
    """The place to look at first, given the values of both programs' inputs by name on every rank.

    Of programs whose values take more than ``most_bytes`` nothing is run.
    """
    if size_bytes(baseline) + size_bytes(candidate) > most_bytes:
        return suspect
    values = Values(kept(baseline, inputs[0]), kept(candidate, inputs[1]))
    alignment = follow(baseline, candidate, relations, values)
    trials = Trials(values, relations.outputs)
    if not trials.wrong:
        return suspect
    search = Hunt(values, alignment, trials, Lines(baseline, candidate))
    scene = scene_of(baseline, candidate, relations, values, alignment, search.wrong_goals(relations))
    found = search.found()
    known = suspect if suspect is not None and _is_computed(suspect) else None
    if found is not None and known is not None and search.is_before(known.candidate.node, found.node.id):
        return known
    say = partial(said, scene, values=values, innocent=search.innocent())
    lasts = _lasts(found, values)
    repair = repaired(trials, search.cone(lasts, is_exact=found is not None and found.is_exact), lasts)
    if repair is not None and (found is None or repair.node.id != found.node.id):
        finding = Finding(node=repair.node, why=Why.DIVERGES)
        return say(finding, before=suspect, mended=True, repair=repair)
    if found is not None:
        finding = Finding(node=found.node, why=found.why)
        return say(finding, before=suspect, mended=True, repair=repair)
    if suspect is not None:
        return suspect
    result = among_results(scene)
    if result is not None:
        return say(result)
    if search.first is None:
        return None
    return say(Finding(node=search.first, why=Why.DIVERGES))


def _is_computed(suspect: Suspect) -> bool:
    """Whether a suspect may be before what values tell: not where it is but another number."""
    return suspect.baseline is not None and suspect.candidate.op not in LEAVES


def _lasts(found: Found | None, values: Values) -> Sequence[NodeId]:
    """Where what is to be looked at for a repair ends."""
    if found is not None:
        return found.right or (found.node.id,)
    stopped_at = values.candidate.stopped_at
    return () if stopped_at is None else (stopped_at.id,)


def scene_of(
    baseline: Graph,
    candidate: Graph,
    relations: Relations,
    values: Values,
    alignment: Alignment,
    unproved: Sequence[Goal],
) -> Scene:
    """What is known of both programs as a whole."""
    return Scene(
        relations=relations.inputs,
        baseline=baseline,
        candidate=candidate,
        inside=tuple(node for node in candidate.nodes if node.op != "input"),
        nodes=values.candidate.nodes,
        given=values.baseline.nodes,
        alignment=alignment,
        standings=values,
        unproved=tuple(unproved),
    )
