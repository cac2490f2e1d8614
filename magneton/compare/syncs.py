"""How often each side brings data to the host in a step: cheap on a processor, a stall on a board."""

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath

from magneton.compare.places import source_line
from magneton.profile.model import Operator, Profile
from magneton.workload import Phase

SHOWN = 2  # lines


def sync_notes(baseline: Profile, candidate: Profile) -> tuple[str, ...]:
    """A sentence for each phase in which the sides differ in it, with the lines that do it most."""
    return tuple(
        note
        for phase in baseline.origin.workload.phases
        if (note := _note(phase, _lines(baseline, phase), _lines(candidate, phase)))
    )


def _note(phase: Phase, one: Counter[str], other: Counter[str]) -> str:
    if one.total() == other.total():
        return ""
    more, most, fewest = (
        ("baseline", one, other) if one.total() > other.total() else ("candidate", other, one)
    )
    places = ", ".join(f"{line} x{count}" for line, count in most.most_common(SHOWN))
    rest = len(most) - SHOWN
    lines = f"{places} and {rest} more lines" if rest > 0 else places
    return (
        f"in {phase} the {more} brings data to the host {most.total()} times a step, the other side"
        f" {fewest.total()} times: {lines}"
    )


def _lines(profile: Profile, phase: Phase) -> Counter[str]:
    return Counter(_line(profile, operator) for operator in _syncs(profile, phase))


def _syncs(profile: Profile, phase: Phase) -> Iterator[Operator]:
    return (op for op in profile.operators if op.phase == phase and op.effect == "sync")


def _line(profile: Profile, operator: Operator) -> str:
    source = source_line(profile.stacks[operator.stack_id])
    return "somewhere" if source is None else f"{PurePath(source.file).name}:{source.line}"
