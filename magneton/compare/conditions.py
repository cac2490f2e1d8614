"""Under which conditions blocks were measured, and which pairs of them may not be held against each other.

A warmer chip leaks more: a pair whose sides began more than ``FAR_APART_C`` apart is no pair. Where that is
so in nearly all rounds it is how the two systems differ, and the pairs stay, with a note.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from magneton.compare.gaps import gap_notes
from magneton.profile.model import BlockReading, Conditions, Profile
from magneton.workload import Phase

FAR_APART_C = 3.0
FEWEST_PAIRS = 3
CLOCKS_DIFFER = 0.02
AGREES = (0.9, 1.1)  # power sensor over counter
MOST_REASONS = 5  # told of throttling
LONGEST_THROTTLE = 1000  # characters; what sensors say takes fewer
LAUNCHING = 2 / 3  # a device that works less than this part of an operator's time waits for its launches


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """``rounds`` that are no pairs, of ``pairs`` whose energy was read on both sides."""

    rounds: frozenset[int]
    pairs: int


def pairs_apart(baseline: Profile, candidate: Profile, phase: Phase) -> Apart:
    """Rounds of ``phase`` whose sides began at other temperatures, unless hardly any pair would be left."""
    one, other = _start_c(baseline, phase), _start_c(candidate, phase)
    common = _read(baseline, phase) & _read(candidate, phase)
    apart = frozenset(r for r in common & one.keys() & other.keys() if abs(one[r] - other[r]) > FAR_APART_C)
    enough = len(common) - len(apart) >= FEWEST_PAIRS
    return Apart(rounds=apart if enough else frozenset(), pairs=len(common))


def condition_notes(baseline: Profile, candidate: Profile, *, paired: bool) -> tuple[str, ...]:
    """What the devices' sensors say against the figures, or against comparing them."""
    found: list[str] = []
    for phase in baseline.origin.workload.phases:
        if paired:
            found += _temperature_notes(baseline, candidate, phase)
        found += _clock_notes(baseline, candidate, phase)
    for side, profile in (("baseline", baseline), ("candidate", candidate)):
        found += [f"on the {side}'s side {text}" for text in side_notes(profile)]
    return tuple(found)


def side_notes(profile: Profile) -> tuple[str, ...]:
    """The same of one recording."""
    return (
        *gap_notes(profile),
        *_throttle_notes(profile.conditions),
        *_foreign_notes(profile.conditions),
        *_agreement_notes(profile.blocks),
        *_launch_notes(profile),
    )


def _temperature_notes(baseline: Profile, candidate: Profile, phase: Phase) -> Iterable[str]:
    one, other = _start_c(baseline, phase), _start_c(candidate, phase)
    apart = pairs_apart(baseline, candidate, phase)
    if apart.rounds:
        yield (
            f"{len(apart.rounds)} of {apart.pairs} pairs of {phase} are left out of its ratio:"
            f" their sides began more than {FAR_APART_C:g} °C apart"
        )
        return
    gaps_c = [other[r] - one[r] for r in one.keys() & other.keys()]
    if gaps_c and abs(median(gaps_c)) > FAR_APART_C:
        warmer = "candidate" if median(gaps_c) > 0 else "baseline"
        yield (
            f"blocks of {phase} began {abs(median(gaps_c)):.0f} °C warmer on the {warmer}'s side, whose chip"
            " leaks more: that is part of the ratio"
        )


def _clock_notes(baseline: Profile, candidate: Profile, phase: Phase) -> Iterable[str]:
    one, other = _clock_hz(baseline, phase), _clock_hz(candidate, phase)
    if one and other and abs(other / one - 1) > CLOCKS_DIFFER:
        yield f"the clocks differ in {phase}: {one / 1e6:.0f} and {other / 1e6:.0f} MHz"


def _throttle_notes(conditions: Iterable[Conditions]) -> Iterable[str]:
    after = Counter(row.throttle for row in conditions if row.moment == "after")
    held = Counter[str]()
    for throttle, blocks in after.items():
        held.update(dict.fromkeys(filter(None, throttle[:LONGEST_THROTTLE].split(", ")), blocks))
    most = sorted(held.items(), key=lambda reason: (-reason[1], reason[0]))
    for reason, blocks in most[:MOST_REASONS]:
        yield f"clocks were held down ({reason}) at the end of {blocks} of {after.total()} blocks"
    if len(most) > MOST_REASONS:
        yield f"clocks were held down for {len(most) - MOST_REASONS} more reasons"


def _foreign_notes(conditions: Sequence[Conditions]) -> Iterable[str]:
    shared = {(row.phase, row.round) for row in conditions if row.foreign}
    if shared:
        of = len({(row.phase, row.round) for row in conditions})
        yield f"processes of others were at work on the device around {len(shared)} of {of} blocks"


def _agreement_notes(blocks: Iterable[BlockReading]) -> Iterable[str]:
    ratios = [block.agreement for block in blocks if block.agreement is not None and block.pass_ == "clean"]
    if ratios and not AGREES[0] <= median(ratios) <= AGREES[1]:
        yield (
            f"the power sensor tells {median(ratios):.2f} times the energy of the counter"
            " (which of them is right is not known: ratios hold, joules may not)"
        )


def _launch_notes(profile: Profile) -> Iterable[str]:
    shares: dict[int, float] = {
        replay.key_id: replay.busy_share for replay in profile.replays if replay.busy_share is not None
    }
    launching = sum(share < LAUNCHING for share in shares.values())
    if launching:
        yield (
            f"{launching} of {len(shares)} kinds of operators keep the device at work for less than two"
            " thirds of their time: their figures are those of launching them"
        )


def _read(profile: Profile, phase: Phase) -> frozenset[int]:
    blocks = (block for block in profile.blocks if block.pass_ == "clean" and block.phase == phase)
    return frozenset(block.round for block in blocks if block.energy_j is not None)


def _start_c(profile: Profile, phase: Phase) -> Mapping[int, float]:
    return {
        row.round: row.temperature_c
        for row in profile.conditions
        if row.phase == phase and row.moment == "before" and row.temperature_c is not None
    }


def _clock_hz(profile: Profile, phase: Phase) -> float | None:
    rows = [row for row in profile.conditions if row.phase == phase and row.moment == "after"]
    clocks_hz = [row.clock_hz for row in rows if row.clock_hz]
    return median(clocks_hz) if clocks_hz else None
