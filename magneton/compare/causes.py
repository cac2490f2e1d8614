"""What kind of waste a row looks like, and which settings may be behind it. Nothing here tests a cause."""

from collections import Counter

from magneton.compare.model import Difference, Kind, Row, Side, SideCost
from magneton.profile.origin import Origin
from magneton.system import CALLABLE


def candidate_causes(
    baseline: Origin, candidate: Origin, known: tuple[Difference, ...]
) -> tuple[Difference, ...]:
    """The differences that could be behind a finding.

    Between two configurations of one system, every difference could. Two systems have flags and packages
    of their own; there only an option that somebody set and a flag that both have say something.
    """
    if is_one_system(baseline, candidate):
        return known
    return tuple(
        difference
        for difference in known
        if difference.where == "option"
        or (
            difference.where == "flag"
            and difference.baseline is not None
            and difference.candidate is not None
        )
    )


def is_one_system(baseline: Origin, candidate: Origin) -> bool:
    """Whether the sides are one program, set differently. Two callables are two programs."""
    if baseline.system == candidate.system == CALLABLE:
        return baseline.options == candidate.options
    return baseline.system == candidate.system


def classify(row: Row, costly: Side, causes: tuple[Difference, ...], *, one_system: bool) -> tuple[Kind, str]:
    """A kind and the observation it rests on; "unclassified" where the profiles do not tell."""
    wasteful, lean = (row.baseline, row.candidate) if costly == "baseline" else (row.candidate, row.baseline)
    if lean is None or lean.work is None:
        return "redundant", "the other side gets by without this work"
    settings = [cause.name for cause in causes if cause.where != "version"]
    if one_system and settings:
        return "misconfiguration", f"one system, and {_listed(settings)} set differently"
    more, fewer = _operators(wasteful), _operators(lean)
    if fewer < more:
        extra = (more - fewer).total()
        return "redundant", f"all that the other side does, and {_operations(extra)} more"
    if fewer.total() < more.total() and not fewer <= more:
        return "api misuse", f"{_operations(more.total())} where other calls need {fewer.total()}"
    return "unclassified", "neither the settings nor the operators tell why"


def _operators(side: SideCost | None) -> Counter[str]:
    return Counter(dict(side.work.operators)) if side is not None and side.work is not None else Counter()


def _operations(count: int) -> str:
    return f"{count} operator" + ("" if count == 1 else "s")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{shown} {'is' if len(names) == 1 else 'are'}"
