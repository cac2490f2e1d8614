"""From findings to one answer and the sentence that carries it."""

import math
from collections.abc import Sequence

from magneton.compare.model import (
    Criteria,
    Finding,
    HostFinding,
    PhaseTotals,
    Row,
    SameWork,
    Verdict,
)
from magneton.quantity import Quantity


def decide(
    same_work: SameWork,
    totals: Sequence[PhaseTotals],
    rows: Sequence[Row],
    findings: Sequence[Finding],
    host_findings: Sequence[HostFinding],
    criteria: Criteria,
) -> tuple[Verdict, str]:
    """The verdict and its reason. What was not established is never "no difference"."""
    if same_work.status == "different":
        failed = next(check for check in same_work.outputs if check.problem is not None)
        return "not the same work", f"output {failed.name}: {failed.problem}"
    if same_work.status == "unchecked":
        return "unresolved", "no outputs were declared, so nothing shows that both sides do the same work"
    certain = [finding for finding in findings if finding.outcome != "unresolved"]
    if certain or host_findings:
        parts = [_counted(certain)] if certain else []
        return "findings", ", ".join([*parts, *(_host(finding) for finding in host_findings)])
    if findings:
        return "unresolved", _uncertain(findings)
    return _without_findings(totals, rows, criteria)


def _counted(findings: Sequence[Finding]) -> str:
    waste = sum(finding.outcome == "waste" for finding in findings)
    offs = len(findings) - waste
    parts = [f"{waste} {'place wastes' if waste == 1 else 'places waste'} energy"] if waste else []
    parts += [f"{offs} {'trades' if offs == 1 else 'trade'} energy for time"] if offs else []
    return ", ".join(parts)


def _host(finding: HostFinding) -> str:
    return f"the {finding.costly}'s host spends {finding.ratio.value:.2f} times as much in {finding.phase}"


def _uncertain(findings: Sequence[Finding]) -> str:
    count = "one difference" if len(findings) == 1 else f"{len(findings)} differences"
    return f"{count} may be beyond the threshold: {findings[0].note}"


def _without_findings(
    totals: Sequence[PhaseTotals], rows: Sequence[Row], criteria: Criteria
) -> tuple[Verdict, str]:
    """No region stands out; the totals must not either, or something was not seen."""
    percent = f"{criteria.threshold * 100:.3g} %"
    for total in totals:
        if total.cost_ratio is None:
            return "unresolved", _no_ratio(total)
        if math.isinf(total.cost_ratio.high):
            return (
                "unresolved",
                f"phase {total.phase} has one reading of a whole step on both sides, and one has no spread",
            )
        if _beyond(total.cost_ratio, criteria.threshold):
            return (
                "unresolved",
                f"the totals of phase {total.phase} differ by more than {percent}, but no operator explains"
                " it: the difference lies in what is not attributed",
            )
        if not _within(total.cost_ratio, criteria.threshold):
            return (
                "unresolved",
                f"the totals of phase {total.phase} may differ by more than {percent}: the interval spans it,"
                " and more rounds may tell",
            )
        unseen = sum(_unseen(row, total, criteria) for row in rows if row.phase == total.phase)
        if unseen:
            places = "one place" if unseen == 1 else f"{unseen} places"
            return "unresolved", f"{places} of phase {total.phase} that matter have no reading to compare"
    return "no difference", f"no region and no total differs by more than {percent}"


def _no_ratio(total: PhaseTotals) -> str:
    costs = (("baseline", total.baseline_cost), ("candidate", total.candidate_cost))
    lacking = [side for side, cost in costs if cost is None]
    if len(lacking) == 1:
        return f"phase {total.phase} has no reading of a whole step on the {lacking[0]}'s side"
    return f"phase {total.phase} has no reading of a whole step on both sides"


def _unseen(row: Row, total: PhaseTotals, criteria: Criteria) -> bool:
    """Whether a place without a cost on some side takes so much of a step that an excess could hide there.

    Its part is that of the cost of the other side, else of the time.
    """
    sides = [
        (side, duration_s)
        for side, duration_s in (
            (row.baseline, total.baseline_duration_s),
            (row.candidate, total.candidate_duration_s),
        )
        if side is not None
    ]
    if row.kind not in ("region", "leftover") or all(side.cost is not None for side, _ in sides):
        return False
    shares = [side.share for side, _ in sides if side.share is not None]
    times = [
        side.duration_s / duration_s.value
        for side, duration_s in sides
        if side.duration_s is not None and duration_s is not None
    ]
    excess = criteria.threshold if row.kind == "region" else 1.0
    return max(shares or times, default=0.0) * excess >= criteria.min_share


def _within(ratio: Quantity, threshold: float) -> bool:
    """Whether its whole interval lies within the threshold."""
    return 1 / (1 + threshold) <= ratio.low <= ratio.high <= 1 + threshold


def _beyond(ratio: Quantity, threshold: float) -> bool:
    return ratio.low > 1 + threshold or 0 < ratio.high < 1 / (1 + threshold)
