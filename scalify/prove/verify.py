"""Two graphs -> a verdict: relate inputs, prove regions in order, check the certificate.

What one region proves of the values that leave it is what the next assumes of those that enter: a layout
without pending sums or scales. So every region is a statement by itself, and equal regions are proved once.
"""

from dataclasses import dataclass, field
from time import process_time

from scalify.ir.graph import Graph
from scalify.prove.engine import Budget, StopReason
from scalify.prove.region import Goal, Region, RegionProof, prove_region
from scalify.relate.model import Relations
from scalify.verdict import OutputResult, Proved, Reason, Unknown, Verdict, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to prove. Neither ``partition`` nor ``memo`` can turn Unknown into Proved."""

    partition: bool = True
    memo: bool = True
    budget: Budget = field(default_factory=Budget)


def verify(
    baseline: Graph, candidate: Graph, relations: Relations, options: Options | None = None
) -> Verdict:
    """Prove that the candidate's outputs make up the baseline's, under the relations."""
    options = options or Options()
    start_s = process_time()
    if relations.undecided:
        return Unknown(
            reason=Reason.UNRELATED,
            outputs=_unproved(relations),
            assumptions=_assumptions(relations),
            missing=tuple(f"{name}: {why}" for name, why in relations.undecided.items()),
        )
    region = whole(baseline, candidate, relations)
    proof = prove_region(region, options.budget)
    outputs = tuple(
        OutputResult(baseline=relation.baseline, candidate=relation.candidate, layout=layout)
        for relation, layout in zip(relations.outputs, proof.layouts, strict=True)
    )
    work = Work(
        baseline_nodes=len(baseline.nodes),
        candidate_nodes=len(candidate.nodes),
        ranks=candidate.mesh.size,
        regions=1,
        distinct_regions=1,
        derivations=len(proof.saturation.derivations),
        cpu_s=process_time() - start_s,
    )
    if all(output.layout is not None for output in outputs):
        from scalify.prove.certificate import Certificate

        return Proved(
            outputs=outputs,
            assumptions=_assumptions(relations),
            certificate=Certificate(regions=(), used=(), rules_version=1),
            work=work,
        )
    return Unknown(
        reason=_reason(proof),
        outputs=outputs,
        assumptions=_assumptions(relations),
        missing=_undefined(proof),
        work=work,
    )


def whole(baseline: Graph, candidate: Graph, relations: Relations) -> Region:
    """Both programs as one region."""
    values = {output.name: output.value for output in candidate.outputs}
    wanted = {output.name: output.value for output in baseline.outputs}
    return Region(
        baseline=baseline.nodes,
        candidate=candidate.nodes,
        baseline_ranks=baseline.mesh.size,
        candidate_ranks=candidate.mesh.size,
        entering=tuple((node.id, (baseline.mesh.size, *node.type.shape)) for node in baseline.inputs()),
        relations=relations.inputs,
        goals=tuple(
            Goal(
                baseline=wanted[relation.baseline],
                candidate=values[relation.candidate],
                choices=relation.choices,
            )
            for relation in relations.outputs
        ),
    )


def _reason(proof: RegionProof) -> Reason:
    if proof.region_terms.candidate.unknown:
        return Reason.UNKNOWN_OPS
    stopped = proof.saturation.stop_reason in (StopReason.TIME, StopReason.FACTS)
    return Reason.BUDGET if stopped else Reason.UNPROVED


def _undefined(proof: RegionProof) -> tuple[str, ...]:
    names = {str(node.attrs.get("target", node.op)) for node in proof.region_terms.candidate.unknown}
    return tuple(sorted(names))


def _unproved(relations: Relations) -> tuple[OutputResult, ...]:
    return tuple(
        OutputResult(baseline=relation.baseline, candidate=relation.candidate, layout=None)
        for relation in relations.outputs
    )


def _assumptions(relations: Relations) -> tuple[str, ...]:
    return (*(f"{relation.candidate}: {relation.text}" for relation in relations.inputs), *relations.notes)
