"""Run both programs again on the values of a witness.

In: a witness' file, and the files of both programs: those that it names, or others, a later version of a
program for instance. Out: a result that is refuted where they still differ, with the difference as it is now.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path

from scalify.errors import ScalifyError
from scalify.ir.check import MAX_DIMENSION
from scalify.ir.evaluate import PerRank
from scalify.ir.graph import NodeId
from scalify.refute.domain import MOST_EDGES
from scalify.refute.draw import FAMILIES
from scalify.refute.pair import Pair, pair_of
from scalify.refute.refute import digest, witness
from scalify.refute.search import differing
from scalify.relate.stated import parse_stated
from scalify.report.result import Result
from scalify.report.store import InvalidResult
from scalify.report.summary import answered
from scalify.report.witness_file import WitnessFile, load
from scalify.verdict import Domain, OutputResult, Reason, Refuted, Unknown, Verdict, Witness
from scalify.verification import Problem, Verification, problem_of

AGAIN = "the file was changed, or written by another release: verify the programs again"


def replay(path: str, baseline: Sequence[str], candidate: Sequence[str], ops: str | None = None) -> Result:
    """Both programs on the values of the witness in a file."""
    kept = load(Path(path))
    _check(kept.witness)
    ones = baseline or [each.path for each in kept.baseline]
    others = candidate or [each.path for each in kept.candidate]
    problem = _problem(kept, ones, others, ops)
    verdict = replayed(problem, kept.witness)
    result = answered(Verification(problem=problem, verdict=verdict), ones, others)
    notes = (*result.notes, *_changed(kept, result))
    return replace(result, notes=notes, witness_file=path)


def replayed(problem: Problem, kept: Witness) -> Verdict:
    """Refuted if the programs differ on the values of the witness."""
    outputs = tuple(
        OutputResult(baseline=each.baseline, candidate=each.candidate, layout=None)
        for each in problem.relations.outputs
    )
    unknown = Unknown(reason=Reason.UNPROVED, outputs=outputs, assumptions=problem.relations.notes)
    if problem.relations.undecided:
        return replace(unknown, reason=Reason.UNRELATED, missing=tuple(problem.relations.undecided.values()))
    pair = pair_of(problem.baseline, problem.candidate, problem.relations)
    pair = _as_then(pair, kept)
    found, useful = differing(pair, problem.relations.outputs, kept.draw)
    if found is None:
        return replace(unknown, reason=Reason.AGREED if useful else Reason.WITHOUT_VALUE)
    return Refuted(outputs=outputs, assumptions=problem.relations.notes, witness=witness(pair, found))


def _problem(
    kept: WitnessFile, baseline: Sequence[str], candidate: Sequence[str], ops: str | None
) -> Problem:
    if kept.needs_ops and ops is None:
        raise ScalifyError(
            "the witness was found with operations defined by Python code",
            hint="give it again: --ops FILE.py",
        )
    definitions: dict[str, list[str]] = {}
    for target, file in kept.definitions:
        definitions.setdefault(target, []).append(file)
    stated = None if kept.relations is None else parse_stated(kept.relations)
    return problem_of(baseline, candidate, stated, definitions, ops)


def _check(kept: Witness) -> None:
    """What the types of a file cannot say."""
    for each in kept.given:
        size, edges = each.domain.size, each.domain.edges
        unbounded = size is not None and not 0 < size <= MAX_DIMENSION
        if unbounded or len(edges) > MOST_EDGES or not all(map(isfinite, edges)):
            raise InvalidResult(f"the witness gives {each.name!r:.80} impossible values", hint=AGAIN)
    if kept.draw.family not in FAMILIES or not 0 <= kept.draw.seed < 1 << 63:
        raise ScalifyError(
            f"the witness was drawn from {kept.draw.family!r:.40}, which this release does not know",
            hint=f"it knows: {', '.join(FAMILIES)}",
        )


def _as_then(pair: Pair, kept: Witness) -> Pair:
    """The pair with what was known of its inputs when the witness was found: the same values come out."""
    known = {each.name: each for each in kept.given}
    found: dict[NodeId, Domain] = {}
    for node, each in zip(pair.baseline.inputs(), pair.inputs(), strict=True):
        was = known.get(each.name)
        if was is None or (was.shape, was.dtype, was.role) != (each.type.shape, each.type.dtype, each.role):
            raise ScalifyError(
                f"the witness does not know the baseline's input {each.name!r:.80} of shape "
                f"{list(each.type.shape)}",
                hint="it is of another program: verify these two",
            )
        found[node.id] = was.domain
    then = replace(pair, domains=found)
    given, _ = then.given(kept.draw)
    for name, values in given.items():
        _check_digest(name, values, known[name].sha256)
    return then


def _check_digest(name: str, values: PerRank, was: str) -> None:
    if digest(values) != was:
        raise InvalidResult(
            f"the values of input {name!r:.80} do not come out as the witness says", hint=AGAIN
        )


def _changed(kept: WitnessFile, result: Result) -> tuple[str, ...]:
    then = {each.path: each.sha256 for each in (*kept.baseline, *kept.candidate)}
    now = (*result.baseline.files, *result.candidate.files)
    return tuple(
        f"{each.path} is not the file that the witness was found with"
        for each in now
        if then.get(each.path) != each.sha256
    )
