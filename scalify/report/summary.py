"""A verification -> its result. This is the side that knows graphs; what reads results need not."""

from collections.abc import Iterable, Sequence
from hashlib import file_digest
from pathlib import Path

from scalify import __version__
from scalify.ir.graph import Graph, Node, Site
from scalify.ir.ops.dtypes import KIND_OF
from scalify.precision.finding import PrecisionFinding
from scalify.report.result import Assumption, File, Outcome, Program, Result, Trust, axes_of
from scalify.report.sources import around, source_lines
from scalify.verdict import OutputResult, Place, Proved, Reason, Refuted, Suspect, Unknown, Verdict
from scalify.verification import Problem, Verification

REASSOCIATION = "sums and products may be taken in another order: equality is over the reals, not bit for bit"


def answered(done: Verification, baseline: Sequence[str], candidate: Sequence[str]) -> Result:
    """The result of a verification of the files."""
    problem, verdict = done.problem, done.verdict
    proved = verdict if isinstance(verdict, Proved) else None
    refuted = verdict if isinstance(verdict, Refuted) else None
    unknown = verdict if isinstance(verdict, Unknown) else None
    suspect = None if isinstance(verdict, Proved) else verdict.suspect
    return Result(
        scalify=__version__,
        verdict=_outcome(verdict),
        reason=unknown.reason if unknown else None,
        baseline=_program(problem.baseline, baseline),
        candidate=_program(problem.candidate, candidate),
        outputs=verdict.outputs,
        assumptions=_assumptions(problem),
        notes=_notes(done),
        unused=problem.relations.unused,
        witness=refuted.witness if refuted else None,
        suspect=suspect,
        missing=unknown.missing if unknown else (),
        lead=unknown.lead if unknown else "",
        precision=done.precision,
        trust=_trust(problem, proved.certificate.rules_version) if proved else None,
        work=verdict.work,
        sources=source_lines((*(_sites(suspect) if suspect else ()), *_precision_sites(done.precision))),
    )


def unanswered(problem: Problem, baseline: Sequence[str], candidate: Sequence[str]) -> Result:
    """The result if nothing more should come of it."""
    return Result(
        scalify=__version__,
        verdict="unknown",
        reason=Reason.KILLED,
        baseline=_program(problem.baseline, baseline),
        candidate=_program(problem.candidate, candidate),
        outputs=tuple(
            OutputResult(baseline=output.baseline, candidate=output.candidate, layout=None)
            for output in problem.relations.outputs
        ),
        assumptions=_assumptions(problem),
        notes=problem.relations.notes,
        unused=problem.relations.unused,
    )


def _outcome(verdict: Verdict) -> Outcome:
    match verdict:
        case Proved():
            return "proved"
        case Refuted():
            return "refuted"
        case Unknown():
            return "unknown"


def _program(graph: Graph, paths: Sequence[str]) -> Program:
    return Program(
        files=tuple(File(path=path, sha256=_sha256(path)) for path in paths),
        name=graph.name,
        nodes=len(graph.nodes),
        mesh=axes_of(graph),
    )


def _sha256(path: str) -> str:
    with Path(path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _assumptions(problem: Problem) -> tuple[Assumption, ...]:
    return tuple(
        Assumption(
            input=relation.name or str(relation.candidate),
            of=relation.of,
            text=relation.text,
            stated=relation.stated,
        )
        for relation in problem.relations.inputs
    )


def _notes(done: Verification) -> tuple[str, ...]:
    """Whatever else the verdict takes for granted: nothing of it may be lost."""
    relations = done.problem.relations
    said = {f"{relation.name or relation.candidate}: {relation.text}" for relation in relations.inputs}
    said |= {*relations.notes}
    return (*relations.notes, *(each for each in done.verdict.assumptions if each not in said))


def _trust(problem: Problem, rules_version: int) -> Trust:
    casts = sum(_is_rounding(node) for graph in (problem.baseline, problem.candidate) for node in graph.nodes)
    policies = [REASSOCIATION]
    if casts:
        policies.append(f"casts between floating-point types are taken as exact: {casts} of them")
    return Trust(rules_version=rules_version, policies=tuple(policies))


def _is_rounding(node: Node) -> bool:
    return node.op == "cast" and KIND_OF[node.type.dtype] in ("float", "complex")


def _precision_sites(findings: Iterable[PrecisionFinding]) -> Iterable[Site]:
    for finding in findings:
        for place in (finding.candidate, finding.baseline):
            if place is not None and place.site is not None:
                yield from around(place.site)


def _sites(suspect: Suspect) -> Iterable[Site]:
    for place in (suspect.candidate, suspect.baseline):
        if place is not None and place.site is not None:
            yield from around(place.site)
    places: list[Place] = [*suspect.chain]
    if suspect.extent is not None:
        places += [*suspect.extent.begins, *suspect.extent.ends]
    yield from (place.site for place in places if place.site is not None)
