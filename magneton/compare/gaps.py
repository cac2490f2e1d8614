"""What was not read, and why: of steps, and of operators."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from magneton.compare.ledger import COSTS_SOMETHING
from magneton.profile.model import KeyId, Profile
from magneton.workload import Phase

REASONS = 3  # told of each
LONGEST = 80  # characters of a reason
UNKNOWN = "no reason is recorded"


def gap_notes(profile: Profile) -> tuple[str, ...]:
    """A sentence for the steps of each phase that have no energy, and one for its operators."""
    if profile.origin.meter.follows_from_counts:
        return ()
    blocks, operators = _block_gaps(profile), _operator_gaps(profile)
    phases = profile.origin.workload.phases
    return tuple(note for phase in phases for note in (*blocks.get(phase, ()), *operators.get(phase, ())))


def _block_gaps(profile: Profile) -> Mapping[Phase, tuple[str, ...]]:
    gaps, blocks = defaultdict[Phase, Counter[str]](Counter), Counter[Phase]()
    for block in profile.blocks:
        if block.pass_ == "clean":
            blocks[block.phase] += 1
            if block.energy_j is None:
                gaps[block.phase][block.gap] += 1
    return {
        phase: (f"{found.total()} of {blocks[phase]} blocks of {phase} have no energy: {_told(found)}",)
        for phase, found in gaps.items()
    }


def _operator_gaps(profile: Profile) -> Mapping[Phase, tuple[str, ...]]:
    """Operators of which no round was read."""
    read = {replay.key_id for replay in profile.replays if replay.energy_j is not None}
    why: dict[KeyId, str] = {replay.key_id: replay.gap for replay in profile.replays}
    why |= {key.key_id: key.skipped for key in profile.keys if key.skipped is not None}
    gaps = defaultdict[Phase, Counter[str]](Counter)
    for operator in profile.operators:
        if operator.effect in COSTS_SOMETHING and operator.key_id not in read:
            gaps[operator.phase][why.get(operator.key_id, "")] += 1
    return {
        phase: (f"{found.total()} operators of {phase} have no energy: {_told(found)}",)
        for phase, found in gaps.items()
    }


def _told(gaps: Counter[str]) -> str:
    return "; ".join(_reasons(gaps.most_common(REASONS), len(gaps)))


def _reasons(most: Iterable[tuple[str, int]], kinds: int) -> Iterator[str]:
    for reason, count in most:
        cut = (reason if len(reason) <= LONGEST else reason[: LONGEST - 1] + "…") or UNKNOWN
        yield f"{cut} ({count})" if kinds > 1 else cut
    if kinds > REASONS:
        yield f"{kinds - REASONS} more reasons"
