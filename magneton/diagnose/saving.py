"""What a place costs less once something was changed: the same system before and after, matched by values."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from magneton.compare.comparability import is_paired
from magneton.compare.ledger import Ledger
from magneton.compare.model import TrialVerdict
from magneton.match.model import Matching
from magneton.profile.model import OpId, Profile
from magneton.quantity import Quantity
from magneton.statistics import common_rounds, known_rounds, summarise

CLOSED, SURELY = 0.8, 0.5  # of the gap: what must go, and what must go whatever the noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """``saved`` per step, below zero where the change costs more; None, with ``problem``, if not known."""

    saved: Quantity | None
    problem: str = ""


def saving(before: Ledger, after: Ledger, matching: Matching, operators: Sequence[OpId]) -> Saving:
    """What ``operators`` of ``before`` and all that does their work in ``after`` cost less there.

    Only where both were recorded in turns: between recordings a machine drifts by more than many an excess.
    """
    if not is_paired(before.profile.origin, after.profile.origin):
        return Saving(saved=None, problem="both versions do not fit into memory at once")
    old, new = _places(before.profile, after.profile, matching, frozenset(operators))
    spent_before = known_rounds(before.rounds, before.by_round(old))
    spent_after = known_rounds(after.rounds, after.by_round(new))
    if not new:  # nothing is left that does it
        spent_after = dict.fromkeys(spent_before, 0.0)
    one, other = common_rounds(spent_before, spent_after)
    if not one:
        return Saving(saved=None, problem="the meter gave no reading of it")
    less = [one[round_] - other[round_] for round_ in one]
    return Saving(saved=summarise(less, before.provenance, spread=before.spread))


def _places(
    before: Profile, after: Profile, matching: Matching, operators: frozenset[OpId]
) -> tuple[tuple[OpId, ...], tuple[OpId, ...]]:
    """All operators of the regions that hold some of ``operators``.

    Where no region holds some of them: what only ``after`` does stands against what only ``before`` does.
    """
    touched = [region for region in matching.regions if operators.intersection(region.baseline)]
    held = frozenset(chain.from_iterable(region.baseline for region in touched))
    old = tuple(sorted(held))
    new = tuple(sorted(chain.from_iterable(region.candidate for region in touched)))
    if operators <= held:
        return old, new
    phases = {before.operators[op].phase for op in operators}
    only_before, only_after = (
        tuple(left.op_id for left in leftovers if profile.operators[left.op_id].phase in phases)
        for profile, leftovers in ((before, matching.only_baseline), (after, matching.only_candidate))
    )
    return old + only_before, new + only_after


def judge(found: Saving, excess: float) -> tuple[TrialVerdict, str]:
    """Whether the gap is closed: its mean by ``CLOSED`` of it, and surely by ``SURELY``."""
    if found.saved is None:
        return "untestable here", found.problem
    share = f"{found.saved.value / excess:.0%} of the excess is gone"
    if found.saved.value >= CLOSED * excess and found.saved.low >= SURELY * excess:
        return "confirmed", share
    if found.saved.high < CLOSED * excess:
        return "refuted", share
    return "untestable here", f"{share}, but the interval is too wide to tell: more rounds may"
