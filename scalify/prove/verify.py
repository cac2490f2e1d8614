"""Two graphs -> a verdict: relate inputs, prove regions in order, check the certificate.

What one region proves of the values that leave it is what the next assumes of those that enter: a layout
without pending sums or scales. So every region is a statement by itself, and equal regions are proved once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import process_time

from scalify.ir.graph import Graph
from scalify.partition import Segment, computed, partition, segments
from scalify.prove.certificate import region_certificate
from scalify.prove.chain import Chain, Progress, prove_chain
from scalify.prove.check import certified, replay_part
from scalify.prove.engine import Budget, StopReason
from scalify.prove.frontier import beyond
from scalify.prove.shared import shared
from scalify.relate.model import Relations
from scalify.verdict import OutputResult, Proved, Reason, Suspect, Unknown, Verdict, Work

MOST_NODES_AT_ONCE = 2_000
"""Up to here a program whose regions were not proved is tried as one region."""

MOST_STEPS = 8
"""How often what was not proved is cut where understanding ended."""

Hopeless = Callable[[], bool]
"""Whether it is known by now that there is no proof."""

NO_RELATIONS = Relations(inputs=(), outputs=(), undecided={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to prove. ``memo`` changes no verdict; ``partition`` goes on behind what could not be followed.

    There everything is lowered anew, so that more can be proved; the certificate is checked all the same.
    """

    partition: bool = True
    memo: bool = True
    budget: Budget = field(default_factory=Budget)


def verify(
    baseline: Graph,
    candidate: Graph,
    relations: Relations,
    options: Options | None = None,
    progress: Progress | None = None,
    hopeless: Hopeless | None = None,
) -> Verdict:
    """Prove that the candidate's outputs make up the baseline's, under the relations.

    ``hopeless`` is asked before more is spent on what was not proved region by region: where values differ,
    there is no proof.
    """
    options = options or Options()
    start_s = process_time()
    if relations.undecided:
        return Unknown(
            reason=Reason.UNRELATED,
            outputs=_results(relations, {}),
            assumptions=_assumptions(relations),
            missing=tuple(f"{name}: {why}" for name, why in relations.undecided.items()),
        )
    if candidate.unrolled:
        candidate = shared(candidate, relations)
    baseline, candidate, chain = _chain(baseline, candidate, relations, options, progress, hopeless)
    outputs = _results(relations, chain.outputs)
    work = Work(
        baseline_nodes=len(baseline.nodes),
        candidate_nodes=len(candidate.nodes),
        ranks=candidate.unrolled or candidate.mesh.size,
        regions=len(chain.links) + (not chain.is_complete),
        distinct_regions=len({link.proof for link in chain.links}) + (not chain.is_complete),
        derivations=sum(len(proof.saturation.derivations) for proof in chain.proofs),
        cpu_s=process_time() - start_s,
    )
    if chain.is_complete and all(output.layout is not None for output in outputs):
        certificate, problems = certified(chain, baseline, candidate, relations)
        if not problems:
            return Proved(
                outputs=outputs,
                assumptions=(*_assumptions(relations), *_assumed(chain)),
                certificate=certificate,
                work=replace(work, cpu_s=process_time() - start_s),
            )
        return Unknown(
            reason=Reason.UNCHECKED,
            outputs=_results(relations, {}),
            assumptions=_assumptions(relations),
            missing=problems,
            work=work,
        )
    return Unknown(
        reason=_reason(chain),
        outputs=_results(relations, {**chain.outputs, **_shown_besides(chain)}),
        assumptions=_assumptions(relations),
        suspect=_suspect(chain, baseline, candidate),
        missing=_undefined(chain),
        work=work,
    )


def _chain(
    baseline: Graph,
    candidate: Graph,
    relations: Relations,
    options: Options,
    progress: Progress | None,
    hopeless: Hopeless | None,
) -> tuple[Graph, Graph, Chain]:
    """Prove region by region; small programs at once, and then step by step, where that did not do.

    With the chain come the programs that it is about.
    """
    if not options.partition:
        return baseline, candidate, _whole(baseline, candidate, relations, options, progress)
    parts = partition(baseline, candidate)
    chain = prove_chain(
        baseline, candidate, parts, relations, options.budget, memo=options.memo, progress=progress
    )
    if chain.is_complete or not _is_small(baseline, candidate) or (hopeless is not None and hopeless()):
        return baseline, candidate, chain
    if len(parts[0]) > 1:
        chain = _whole(baseline, candidate, relations, options, progress)
    if chain.is_complete:
        return baseline, candidate, chain
    # Behind a cut, what a program computes twice would be two values of which nothing is known.
    once = shared(baseline, NO_RELATIONS), shared(candidate, relations)
    further = _step_by_step(*once, relations, options)
    return (*once, further) if further.is_complete else (baseline, candidate, chain)


def _is_small(*graphs: Graph) -> bool:
    return all(len(graph.nodes) <= MOST_NODES_AT_ONCE for graph in graphs)


def _whole(
    baseline: Graph,
    candidate: Graph,
    relations: Relations,
    options: Options,
    progress: Progress | None = None,
) -> Chain:
    """Prove the programs as one region."""
    parts = segments(computed(baseline), (), baseline), segments(computed(candidate), (), candidate)
    return prove_chain(baseline, candidate, parts, relations, options.budget, memo=False, progress=progress)


def _step_by_step(baseline: Graph, candidate: Graph, relations: Relations, options: Options) -> Chain:
    """Cut where understanding ended, and go on from there, as long as that leads further."""
    chain = _whole(baseline, candidate, relations, options)
    done: list[tuple[Segment, Segment]] = []
    (first,), (second,) = (segments(computed(graph), (), graph) for graph in (baseline, candidate))
    last = first, second
    while chain.stuck is not None and len(done) < MOST_STEPS:
        cut = beyond(last, chain.stuck, (baseline, candidate))
        if cut is None:
            break
        (first, rest), (second, other_rest) = cut
        done.append((first, second))
        last = rest, other_rest
        own, other = zip(*done, last, strict=True)
        chain = prove_chain(baseline, candidate, (own, other), relations, options.budget, memo=False)
        if len(chain.links) < len(done):
            break
    return chain


def _reason(chain: Chain) -> Reason:
    if chain.stuck is None:
        return Reason.UNPROVED
    _, proof = chain.stuck
    if proof.saturation.stop_reason in (StopReason.TIME, StopReason.FACTS):
        return Reason.BUDGET
    return Reason.UNKNOWN_OPS if proof.region_terms.candidate.unknown else Reason.UNPROVED


def _shown_besides(chain: Chain) -> dict[str, str]:
    """What was shown of outputs in the region that was not proved as a whole, if it can be replayed."""
    if chain.stuck is None:
        return {}
    region, proof = chain.stuck
    goals = zip(region.goals, proof.shown, strict=True)
    found = {goal.output: answer.layout for goal, answer in goals if goal.output and answer is not None}
    if not found or replay_part(region_certificate(region, proof), proof.region_terms):
        return {}
    return found


def _suspect(chain: Chain, baseline: Graph, candidate: Graph) -> Suspect | None:
    """The place to look at; none where an engine was stopped before it had said what it could."""
    if chain.stuck is None or _reason(chain) is Reason.BUDGET:
        return None
    # Proofs, which are most runs, do without what it imports.
    from scalify.localize import localize

    return localize(*chain.stuck, baseline, candidate)


def _undefined(chain: Chain) -> tuple[str, ...]:
    """The operations without a meaning in the region that was not proved."""
    if chain.stuck is None:
        return ()
    unknown = chain.stuck[1].region_terms.candidate.unknown
    return tuple(sorted({str(node.attrs.get("target", node.op)) for node in unknown}))


def _results(relations: Relations, shown: Mapping[str, str]) -> tuple[OutputResult, ...]:
    return tuple(
        OutputResult(
            baseline=relation.baseline, candidate=relation.candidate, layout=shown.get(relation.candidate)
        )
        for relation in relations.outputs
    )


def _assumed(chain: Chain) -> tuple[str, ...]:
    sides = [side for p in chain.proofs for side in (p.region_terms.baseline, p.region_terms.candidate)]
    return tuple(sorted({text for side in sides for text in side.assumed}))


def _assumptions(relations: Relations) -> tuple[str, ...]:
    return (
        *(f"{relation.name or relation.candidate}: {relation.text}" for relation in relations.inputs),
        *relations.notes,
    )
