"""Check a certificate without the engine: what is wrong with it, or nothing.

``replay`` checks the proof of one region. Its terms are made again; every derivation must name operations
that these terms have, premises that were established before it, and the very view that its rule concludes;
places are tried (``scalify.prove.steps``). What was shown of each goal must follow from an established view.

``check`` does so for every distinct proof and then walks through the two programs: the regions must be made
of their nodes, each must be equal to the region that its proof speaks of, every value that enters must be
known from the relations or from a region before, and every output must have been shown.

Trusted are the lowering, which terms are equal (``scalify.prove.classes``), and the rules where they speak of
scales and pending combinations. The engine, its program and its encoding are not.
"""

from collections.abc import Sequence

from scalify.ir.graph import Graph
from scalify.layout.views import View
from scalify.prove.certificate import (
    RULES_VERSION,
    Certificate,
    RegionCertificate,
    certificate_of,
    premises_of,
)
from scalify.prove.chain import Chain
from scalify.prove.engine import Derivation
from scalify.prove.established import Established, Rejected, established
from scalify.prove.places import are_inside, moved, points_of, read_at
from scalify.prove.programs import Programs
from scalify.prove.region import Goal, Region, RegionTerms, Shown, goal_terms, shown
from scalify.prove.steps import STEPS
from scalify.relate.model import Relations


def check(
    certificate: Certificate,
    baseline: Graph,
    candidate: Graph,
    relations: Relations,
    lowered: Sequence[RegionTerms] | None = None,
) -> tuple[str, ...]:
    """What is wrong with a certificate of these programs under these relations; nothing if it holds.

    ``lowered`` are the terms of the distinct regions where they are at hand.
    """
    if certificate.rules_version != RULES_VERSION:
        return (f"the rules are of version {certificate.rules_version}, not {RULES_VERSION}",)
    for number, region in enumerate(certificate.regions):
        problems = replay(region, lowered[number] if lowered is not None else None)
        if problems:
            return tuple(f"proof {number}: {problem}" for problem in problems)
    programs = Programs(baseline, candidate, relations)
    keys = [region.region.key() for region in certificate.regions]
    for place, use in enumerate(certificate.used):
        try:
            region = programs.region(use)
        except Rejected as error:
            return (f"region {place}: {error}",)
        if not 0 <= use.region < len(keys) or region.key() != keys[use.region]:
            return (f"region {place}: its proof {use.region} is of another region",)
        programs.learn(region, certificate.regions[use.region].shown)
    return tuple(f"nothing is shown of output {name!r}" for name in programs.unshown())


def certified(
    chain: Chain, baseline: Graph, candidate: Graph, relations: Relations
) -> tuple[Certificate, tuple[str, ...]]:
    """The certificate of a chain that is complete, and what is wrong with it."""
    certificate = certificate_of(chain)
    proofs = dict.fromkeys(link.proof for link in chain.links)
    lowered = [chain.proofs[proof].region_terms for proof in proofs]
    return certificate, check(certificate, baseline, candidate, relations, lowered)


def replay(certificate: RegionCertificate, lowered: RegionTerms | None = None) -> tuple[str, ...]:
    """What is wrong with the proof of a region; nothing if it can be replayed.

    ``lowered`` are the region's terms where they are at hand; else they are made again.
    """
    problems = replay_part(certificate, lowered)
    return problems or _missing(certificate.region, certificate.shown)


def replay_part(certificate: RegionCertificate, lowered: RegionTerms | None = None) -> tuple[str, ...]:
    """The same of a region of which not every goal was shown: what was shown has to follow."""
    known = established(certificate, lowered)
    for place, step in enumerate(certificate.derivations):
        try:
            _follow(known, step)
        except (Rejected, ValueError) as error:
            return (f"step {place} ({step.rule}): {error}",)
    if len(certificate.shown) != len(certificate.region.goals):
        return ("what was shown is not of these goals",)
    return _unfounded(known)


def _follow(known: Established, step: Derivation) -> None:
    """Establish what one derivation concludes; raise ``Rejected`` where it does not follow."""
    own, other = known.term(step.candidate), known.term(step.baseline)
    view = known.view(step.view)
    for premise in premises_of(step):
        if not known.is_known(known.term(premise[0]), known.term(premise[1]), premise[2]):
            raise Rejected(f"premise {premise} is not established")
    if STEPS[step.rule](known, own, other, step.premises) != view:
        raise Rejected(f"the rule does not conclude {step.view}")
    known.learn(own, other, step.view)


def _unfounded(known: Established) -> tuple[str, ...]:
    """Goals of which something else was shown than what is established."""
    problems: list[str] = []
    for goal, answer in zip(known.certificate.region.goals, known.certificate.shown, strict=True):
        if answer is None:
            continue
        views = known.known_views(*goal_terms(goal, known.lowered))
        if not any(shown(goal, known.lowered, view) == answer for view in views):
            problems.append(f"nothing shows {goal.candidate} to be {goal.baseline} {answer.layout}")
        elif not any(_is_so(known, goal, answer, view) for view in views):
            problems.append(f"{goal.candidate} is not {goal.baseline} at some place")
    return tuple(problems)


def _is_so(known: Established, goal: Goal, answer: Shown, view: View) -> bool:
    """Whether, by this view, the candidate's value reads the baseline's through the map that was shown."""
    own = known.lowered.candidate.accesses[goal.candidate].index
    given = known.lowered.baseline.accesses[goal.baseline].index
    points = points_of(own.domain)
    target = read_at(answer.index, points)
    inside = moved(read_at(own, points), [-start for start, _ in view.window])
    return (
        view.scale == 1
        and view.partial is None
        and answer.index.domain == own.domain
        and are_inside(target, given.domain)
        and are_inside(inside, view.index.domain)
        and bool((read_at(view.index, inside) == read_at(given, target)).all())
    )


def _missing(region: Region, found: tuple[Shown | None, ...]) -> tuple[str, ...]:
    """Values that leave the region of which nothing was shown."""
    reached = {goal.candidate for goal, answer in zip(region.goals, found, strict=True) if answer}
    problems = [
        f"nothing is shown of {goal.candidate}"
        for goal, answer in zip(region.goals, found, strict=True)
        if answer is None and (goal.choices is not None or goal.candidate not in reached)
    ]
    return tuple(dict.fromkeys(problems))
