"""A report against what its case expects. A field is None where the case does not ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from energy_cases.case import Case

from magneton.compare.findings import sides_of
from magneton.compare.model import Comparison, Finding, Row, SideCost
from magneton.profile.model import Frame

CERTAIN = frozenset(("waste", "trade-off"))
COLUMNS = ("outcome", "found", "region", "kind", "line", "direction", "confirmed", "false")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """``found``: a certain finding begins in the case's file. ``region``: and its row has a culprit operator.

    The rest is of the first finding with the right region, or else of the first one found. ``line``: a
    marked line is in the calls that the report shows, or the flag among its causes. ``why`` is for people.
    """

    name: str
    outcome: bool
    found: bool | None
    region: bool | None
    kind: bool | None
    line: bool | None
    direction: bool | None
    confirmed: bool | None
    false_findings: int
    findings: int
    verdict: str
    why: str

    def row(self) -> str:
        told = (self.outcome, self.found, self.region, self.kind, self.line, self.direction, self.confirmed)
        marks = [{True: "yes", False: "NO", None: "-"}[value] for value in told]
        return "".join(f"{mark:>12s}" for mark in (*marks, str(self.false_findings)))


def score(case: Case, comparison: Comparison) -> Score:
    certain = [finding for finding in comparison.findings if finding.outcome in CERTAIN]
    planted = [finding for finding in certain if _is_planted(case, comparison.rows[finding.row])]
    blamed = [finding for finding in planted if finding.costly == case.costly]
    expected = blamed if case.outcomes != ("none",) else []
    right = [finding for finding in expected if _has_culprit(case, comparison.rows[finding.row], finding)]
    best = next(iter([*right, *blamed, *planted]), None)
    asked = case.is_planted
    line = best is not None and _names_cause(case, comparison.rows[best.row], best)
    return Score(
        name=case.name,
        outcome=_outcome(comparison, best) in case.outcomes,
        found=bool(planted) if asked else None,
        region=bool(right) if asked else None,
        kind=best is not None and best.kind == case.kind if asked else None,
        line=line if asked else None,
        direction=best is not None and best.costly == case.costly if asked else None,
        confirmed=any(finding.confirmed for finding in right) if asked else None,
        false_findings=len(certain) - len(expected),
        findings=len(comparison.findings),
        verdict=comparison.verdict,
        why=_why(comparison, best, certain, expected),
    )


def summary(cases: Sequence[Case], scores: Sequence[Score]) -> Mapping[str, object]:
    """Of planted cases how many are right in each respect; of all, how many findings are false."""
    planted = {case.name for case in cases if case.is_planted}
    asked = [found for found in scores if found.name in planted]
    told = {
        name: f"{sum(getattr(found, name) is True for found in asked)} of {len(asked)}"
        for name in ("outcome", "found", "region", "kind", "line", "direction", "confirmed")
    }
    others = [found for found in scores if found.name not in planted]
    return {
        **told,
        "others with the right outcome": f"{sum(found.outcome for found in others)} of {len(others)}",
        "false findings": sum(found.false_findings for found in scores),
    }


def _outcome(comparison: Comparison, best: Finding | None) -> str:
    if comparison.verdict == "not the same work":
        return comparison.verdict
    return "none" if best is None else best.outcome


def _is_planted(case: Case, row: Row) -> bool:
    """Whether work of either side begins in the case's file."""
    chains = [side.work.chain for side in (row.baseline, row.candidate) if side and side.work]
    return any(_in_file(case, frame) for chain in chains for frame in chain)


def _has_culprit(case: Case, row: Row, finding: Finding) -> bool:
    side = _costly(row, finding)
    if side.work is None:
        return False
    return any(name.rpartition(".")[0] in case.operators for name, _ in side.work.operators)


def _costly(row: Row, finding: Finding) -> SideCost:
    return sides_of(row, finding.costly)[0]


def _names_cause(case: Case, row: Row, finding: Finding) -> bool:
    if case.flag is not None:
        return any(cause.name == case.flag for cause in finding.causes)
    side = _costly(row, finding)
    if side.work is None:
        return False
    lines = case.culprit_lines()
    return any(frame.line in lines for frame in side.work.chain if _in_file(case, frame))


def _in_file(case: Case, frame: Frame) -> bool:
    return Path(frame.file).name == case.file.name


def _why(
    comparison: Comparison, best: Finding | None, certain: Sequence[Finding], expected: Sequence[Finding]
) -> str:
    parts: list[str] = []
    if best is None:
        parts.append(f"{comparison.verdict}: {comparison.reason}")
    else:
        row = comparison.rows[best.row]
        side = _costly(row, best)
        source = side.work.source if side.work is not None else None
        place = "" if source is None else f" at {Path(source.file).name}:{source.line}"
        parts.append(f"{best.outcome}, {best.kind}, {best.excess_share:.1%} of the step{place}")
    for finding in certain:
        if finding not in expected:
            row = comparison.rows[finding.row]
            side = _costly(row, finding)
            names = ", ".join(name for name, _ in side.work.operators[:3]) if side.work else "?"
            parts.append(f"false: {finding.costly} {finding.excess_share:.1%} {names}")
    return "; ".join(parts)
