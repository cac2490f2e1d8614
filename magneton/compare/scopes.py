"""Where the cost lies that no operator accounts for: in which scopes of the system, between its operators.

In: the ledgers of two profiles whose systems were surveyed. Out: parts of each side's residual. A scope costs
its share of the samples times the clean total, and what its operators cost is taken off:

    clean total         | model forward          | input preparation | sampling |    shares of the samples
    operators           | ########## ####        | ####              | #        |    replay
    between operators              .    ....          ...............   ........     the residual

Where the operators of a scope seem to cost more than all of it, nothing is left to lie between them, and the
other scopes give way, so that the parts still add up to the residual.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from magneton.compare.ledger import Ledger
from magneton.compare.model import Criteria, PhaseTotals, Row, ScopeCost, ScopeRow
from magneton.profile.cost import attribute
from magneton.profile.model import OpId
from magneton.quantity import Quantity
from magneton.workload import Phase

Z = 1.96  # of a 95 % interval
MOST_NOTES = 3  # of one phase


def scope_costs(ledger: Ledger, phase: Phase) -> Mapping[str, ScopeCost]:
    """One side's scopes in a phase, the longest first; none where it was not surveyed."""
    survey = [scope for scope in ledger.profile.scopes if scope.phase == phase]
    looks, length_s = sum(row.samples for row in survey), sum(row.duration_s for row in survey)
    if not looks or not 0 < length_s < math.inf:
        return {}
    shares = {row.scope: row.duration_s / length_s for row in survey}
    attributed = _attributed(ledger, phase)
    costs = _between(ledger, phase, shares, attributed, looks)
    step = ledger.duration_s(phase)
    return {
        row.scope: ScopeCost(
            scope=row.scope,
            samples=row.samples,
            share=shares[row.scope],
            duration_s=None if step is None else shares[row.scope] * step.value,
            attributed=attributed[row.scope].value if row.scope in attributed else 0.0,
            cost=costs.get(row.scope),
        )
        for row in sorted(survey, key=lambda row: -row.duration_s)
    }


def scope_rows(baseline: Ledger, candidate: Ledger, phase: Phase) -> tuple[ScopeRow, ...]:
    """Scopes of both sides beside each other, the largest cost of either first."""
    sides = scope_costs(baseline, phase), scope_costs(candidate, phase)
    rows = [
        _row(scope, *(_side(side, scope) for side in sides))
        for scope in dict.fromkeys((*sides[0], *sides[1]))
    ]
    return tuple(sorted(rows, key=_largest, reverse=True))


def scope_notes(rows: Sequence[Row], totals: Sequence[PhaseTotals], criteria: Criteria) -> tuple[str, ...]:
    """Scopes that clearly cost one side more between operators: worth a look, and no finding."""
    notes: list[str] = []
    by_phase = {total.phase: total for total in totals}
    for row in rows:
        ratios = ((scope, _clear_ratio(scope, by_phase[row.phase], criteria)) for scope in row.scopes)
        clear = [(scope, ratio) for scope, ratio in ratios if ratio is not None]
        notes += [_note(scope, ratio, row.phase) for scope, ratio in clear[:MOST_NOTES]]
    return tuple(notes)


def _attributed(ledger: Ledger, phase: Phase) -> Mapping[str, Quantity]:
    """What the operators of each scope cost."""
    operators: defaultdict[str, list[OpId]] = defaultdict(list)
    for operator in ledger.profile.operators:
        if operator.phase == phase:
            operators[operator.scope].append(operator.op_id)
    costs = {scope: ledger.attributed(members) for scope, members in operators.items()}
    return {scope: cost for scope, cost in costs.items() if cost is not None}


def _between(
    ledger: Ledger,
    phase: Phase,
    shares: Mapping[str, float],
    attributed: Mapping[str, Quantity],
    looks: int,
) -> Mapping[str, Quantity]:
    """The residual in parts. None on a board: there the host's time is not where the energy goes."""
    total, residual = ledger.total(phase), attribute(ledger.profile, phase).unattributed
    if total is None or residual <= 0 or ledger.profile.origin.device_kind != "cpu":
        return {}
    left = {scope: _left(share, looks, total, attributed.get(scope)) for scope, share in shares.items()}
    spread = sum(part.value for part in left.values())
    if not 0 < spread < math.inf:
        return {}
    return {scope: part.scaled(residual / spread) for scope, part in left.items()}


def _left(share: float, looks: int, total: Quantity, operators: Quantity | None) -> Quantity:
    """What a scope costs beyond its operators, with the errors of both; never less than nothing."""
    known, below, above = 0.0, 0.0, 0.0
    if operators is not None:
        known, below, above = (
            operators.value,
            operators.high - operators.value,
            operators.value - operators.low,
        )
    value = share * total.value - known
    low, high = _interval(share, looks)
    return Quantity(
        value=max(0.0, value),
        low=max(0.0, value - math.hypot((share - low) * total.value, below)),
        high=max(0.0, value + math.hypot((high - share) * total.value, above)),
        n=looks,
        provenance=total.provenance,
    )


def _interval(share: float, looks: int) -> tuple[float, float]:
    """A share that was sampled, with what it may be (Wilson's interval)."""
    scale = 1 + Z * Z / looks
    centre = (share + Z * Z / (2 * looks)) / scale
    half = Z / scale * math.sqrt(share * (1 - share) / looks + (Z / (2 * looks)) ** 2)
    return min(share, centre - half), max(share, centre + half)


def _side(costs: Mapping[str, ScopeCost], scope: str) -> ScopeCost | None:
    """A side that was surveyed and never seen in a scope spends nothing there that the samples could tell."""
    if scope in costs or not costs:
        return costs.get(scope)
    cost = next(iter(costs.values())).cost
    nothing = (
        None if cost is None else Quantity(value=0.0, low=0.0, high=0.0, n=cost.n, provenance=cost.provenance)
    )
    return ScopeCost(scope=scope, samples=0, share=0.0, duration_s=0.0, attributed=0.0, cost=nothing)


def _row(scope: str, baseline: ScopeCost | None, candidate: ScopeCost | None) -> ScopeRow:
    one = None if baseline is None else baseline.cost
    other = None if candidate is None else candidate.cost
    ratio = excess = None
    if one is not None and other is not None:
        ratio, excess = _ratio(one, other), other.value - one.value
    return ScopeRow(scope=scope, baseline=baseline, candidate=candidate, ratio=ratio, excess=excess)


def _ratio(baseline: Quantity, candidate: Quantity) -> Quantity | None:
    """Candidate over baseline, as far as the samples tell: both errors together, on a logarithmic scale."""
    if baseline.low <= 0 or candidate.low <= 0:
        return None
    value = candidate.value / baseline.value
    up = math.hypot(math.log(candidate.high / candidate.value), math.log(baseline.value / baseline.low))
    down = math.hypot(math.log(candidate.value / candidate.low), math.log(baseline.high / baseline.value))
    return Quantity(
        value=value,
        low=value * math.exp(-down),
        high=value * math.exp(up),
        n=min(baseline.n, candidate.n),
        provenance=candidate.provenance,
    )


def _largest(row: ScopeRow) -> tuple[float, float]:
    sides = [side for side in (row.baseline, row.candidate) if side is not None]
    cost = max((side.cost.value for side in sides if side.cost is not None), default=0.0)
    return cost, max(side.share for side in sides)


def _clear_ratio(row: ScopeRow, total: PhaseTotals, criteria: Criteria) -> float | None:
    """The ratio of a scope whose difference matters, and is larger than the sampling may be wrong."""
    if row.ratio is None or row.excess is None:
        return None
    costly = total.candidate_cost if row.excess > 0 else total.baseline_cost
    matters = costly is not None and abs(row.excess) >= criteria.min_share * costly.value
    beyond = 1 + criteria.threshold
    clear = row.ratio.low > beyond or row.ratio.high < 1 / beyond
    return row.ratio.value if matters and clear else None


def _note(row: ScopeRow, ratio: float, phase: Phase) -> str:
    costly, times = ("candidate", ratio) if ratio > 1 else ("baseline", 1 / ratio)
    where = row.scope or "outside all that has a name"
    return f"in {phase} the {costly} spends {times:.1f}x as much between operators on {where} (by samples)"
