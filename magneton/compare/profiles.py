"""One comparison from beginning to end, without side effects."""

from dataclasses import replace

from magneton.compare.account import account, phase_totals, residual_notes
from magneton.compare.beside import beside, find_host, host_entry, net_of_rest
from magneton.compare.causes import candidate_causes
from magneton.compare.comparability import check_comparable, differences, is_paired, notes
from magneton.compare.conditions import condition_notes
from magneton.compare.findings import find
from magneton.compare.ledger import Ledger
from magneton.compare.model import Comparison, Criteria, Divergence, SideSummary
from magneton.compare.places import place_value
from magneton.compare.same_work import check_same_work
from magneton.compare.scopes import scope_notes
from magneton.compare.syncs import sync_notes
from magneton.compare.verdict import decide
from magneton.match.divergence import first_divergence
from magneton.match.matching import match
from magneton.match.model import Matching
from magneton.profile.model import Profile

_DIVERGES = {"values": "other numbers", "order": "the same numbers in another order"}


def compare(
    baseline: Profile,
    candidate: Profile,
    matching: Matching,
    criteria: Criteria,
) -> Comparison:
    """What one side spends above the other on the same work.

    Raises ``Incomparable`` where the profiles must not be compared.
    """
    check_comparable(baseline, candidate)
    paired = is_paired(baseline.origin, candidate.origin)
    same_work = check_same_work(baseline, candidate, criteria.tolerance)
    ledgers = Ledger(baseline), Ledger(candidate)
    phases = baseline.origin.workload.phases
    hosts = {phase: host_entry(baseline, candidate, phase, paired=paired) for phase in phases}
    totals = tuple(
        beside(
            phase_totals(*ledgers, phase, paired=paired),
            net_of_rest(baseline, candidate, phase, paired=paired),
            hosts[phase],
        )
        for phase in phases
    )
    entries = account(*ledgers, matching, paired=paired, confidence=criteria.confidence)
    rows = tuple(entry.row for entry in entries)
    known = differences(baseline.origin, candidate.origin)
    origins = baseline.origin, candidate.origin
    findings = () if same_work.status == "different" else find(entries, totals, criteria, origins, known)
    host_findings = ()
    if same_work.status != "different":
        measured = [entry for entry in hosts.values() if entry is not None]
        host_findings = find_host(measured, totals, criteria, candidate_causes(*origins, known))
    verdict, reason = decide(same_work, totals, rows, findings, host_findings, criteria)
    return Comparison(
        baseline=SideSummary(origin=baseline.origin, doubts=baseline.doubts),
        candidate=SideSummary(origin=candidate.origin, doubts=candidate.doubts),
        paired=paired,
        unit=baseline.origin.meter.unit,
        provenance=baseline.origin.meter.provenance,
        criteria=criteria,
        verdict=verdict,
        reason=reason,
        same_work=same_work,
        totals=totals,
        rows=rows,
        findings=findings,
        host_findings=host_findings,
        differences=known,
        notes=(
            *notes(baseline, candidate),
            *residual_notes(rows),
            *scope_notes(rows, totals, criteria),
            *condition_notes(baseline, candidate, paired=paired),
            *sync_notes(baseline, candidate),
        ),
    )


def compare_profiles(baseline: Profile, candidate: Profile, criteria: Criteria) -> Comparison:
    """Match two profiles and compare them; where they do other work, say where it begins to be another.

    What must not be compared is refused before it is matched.
    """
    check_comparable(baseline, candidate)
    matching = match(baseline, candidate)
    comparison = compare(baseline, candidate, matching, criteria)
    if comparison.verdict != "not the same work":
        return comparison
    divergence = _divergence(baseline, candidate, matching)
    return replace(comparison, same_work=replace(comparison.same_work, divergence=divergence))


def _divergence(baseline: Profile, candidate: Profile, matching: Matching) -> Divergence | None:
    found = first_divergence(baseline, candidate, matching)
    if found is None:
        return None
    return Divergence(
        text=_DIVERGES[found.kind],
        baseline=place_value(baseline, found.baseline),
        candidate=place_value(candidate, found.candidate),
    )
