"""What a validation measures, part by part: each returns what the result says of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from gpu.bench import Bench, Case, Subject
from gpu.budget import Lengths
from gpu.estimates import Interval, ratio_of_pairs, ratio_to_known
from gpu.windows import (
    LongWindow,
    Pace,
    Seeker,
    long_window,
    metered,
    pace_of,
    plain_windows,
    watched_and_not,
)

from magneton.errors import MagnetonError
from magneton.meters.board import Board
from magneton.meters.meter import Meter, Reading

SPARE = 1.1  # windows are planned so much longer than the meter needs
WATCHED = 0.6  # of the shortest window: long enough for a reading, which shows that the meter was at work


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The board under test, with all that reads it."""

    bench: Bench
    board: Board
    meter: Meter
    lengths: Lengths
    poll_s: float  # how often a long window looks at the counter, at its ends

    def times(self, pace: Pace) -> int:
        """Executions that fill one of the meter's windows."""
        return pace.times(SPARE * self.meter.shortest_window_s)

    def seeker(self, length_s: float) -> Seeker:
        """What watches the counter over a long window."""
        return Seeker(self.board.total_energy_j, self.bench.clock, length_s, self.poll_s)


def idle(site: Site) -> Mapping[str, object]:
    """Power of the board with a context and nothing to do, gross."""
    seeker = site.seeker(site.lengths.idle_s)
    window = long_window(site.bench, seeker, None, None)
    return asdict(window) | {"instant_power_w": site.board.instant_power_w()}


def operator(site: Site, subject: Subject, seed: int) -> Mapping[str, object]:
    """Short windows of the meter, and plain ones, against one long window of the counter."""
    bench, read_j, lengths = site.bench, site.board.total_energy_j, site.lengths
    pace = pace_of(bench, subject, lengths.warm_up_s)
    long = long_window(bench, site.seeker(lengths.long_s), subject, pace)
    truth_j = long.execution_j or 0.0  # above 0: a window in which nothing was spent is an error
    times = site.times(pace)
    readings = [metered(bench, site.meter, subject, times) for _ in range(lengths.replays)]
    plain_j, single_j = plain_windows(bench, read_j, subject, pace, lengths, seed=seed)
    return {
        "name": subject.name,
        "what": subject.what,
        "execution_s": pace.execution_s,
        "long": asdict(long),
        "replay": _replay(readings, times, long),
        "plain": {"window_s": lengths.plain_s} | _errors(plain_j, truth_j),
        "plain_single": {"window_s": pace.execution_s} | _errors(single_j, truth_j),
    }


def overhead(site: Site, subject: Subject) -> Mapping[str, object]:
    """How much longer the same work takes while the meter looks at the board."""
    pace = pace_of(site.bench, subject, site.lengths.warm_up_s)
    times = pace.times(WATCHED * site.meter.shortest_window_s)
    watched_s, alone_s = watched_and_not(site.bench, site.meter, subject, times, site.lengths.pairs)
    return {
        "name": subject.name,
        "execution_s": pace.execution_s,
        "time_ratio": _told(ratio_of_pairs(watched_s, alone_s)),
    }


def case(site: Site, case: Case) -> Mapping[str, object]:
    """Energy of the costly way over that of the lean one, by windows in turns."""
    sides = (case.costly, case.lean)
    times = [site.times(pace_of(site.bench, side, site.lengths.warm_up_s)) for side in sides]
    read: tuple[list[Reading], list[Reading]] = ([], [])
    for pair in range(site.lengths.pairs):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            read[side].append(metered(site.bench, site.meter, sides[side], times[side]))
    both = [pair for pair in zip(*read, strict=True) if None not in (pair[0].energy_j, pair[1].energy_j)]
    costly_j, lean_j = ([(pair[side].energy_j or 0.0) / times[side] for pair in both] for side in (0, 1))
    energy = ratio_of_pairs(costly_j, lean_j)
    if energy is None:
        raise MagnetonError("no pair of windows was read", hint="; ".join(_gaps((*read[0], *read[1]))))
    costly_s, lean_s = ([pair[side].duration_s / times[side] for pair in both] for side in (0, 1))
    return {
        "name": case.name,
        "title": case.title,
        "costly": _side(case.costly, costly_j, costly_s),
        "lean": _side(case.lean, lean_j, lean_s),
        "energy_ratio": _told(energy),
        "time_ratio": _told(ratio_of_pairs(costly_s, lean_s)),
        "clear_of_one": energy.clear_of_one,
        "verdict": _verdict(energy),
        "published_end_to_end": case.published,
        "rejected": _gaps((*read[0], *read[1])),
    }


def _replay(readings: Sequence[Reading], times: int, long: LongWindow) -> Mapping[str, object]:
    good = [reading for reading in readings if reading.energy_j is not None]
    energies_j = [(reading.energy_j or 0.0) / times for reading in good]
    found = ratio_to_known(energies_j, long.execution_j or 0.0)
    window_s = median(reading.duration_s for reading in readings)
    return {
        "executions": times,
        "window_s": window_s,
        "pace": None if long.execution_s is None else window_s / times / long.execution_s,
        "execution_j": median(energies_j) if energies_j else None,
        "error": None if found is None else found.ratio - 1,
        "error_low": None if found is None or found.low is None else found.low - 1,
        "error_high": None if found is None or found.high is None else found.high - 1,
        "windows": len(good),
        "agreement": [reading.agreement for reading in good],
        "states": [None if reading.after is None else asdict(reading.after) for reading in readings],
        "rejected": _gaps(readings),
    }


def _errors(energies_j: Sequence[float], truth_j: float) -> dict[str, object]:
    errors = sorted((energy_j / truth_j - 1 for energy_j in energies_j), key=abs)
    return {
        "windows": len(errors),
        "error_median": median(errors),
        "error_worst": errors[-1],
        "absolute_error_median": median(map(abs, errors)),
        "read_nothing": sum(energy_j == 0 for energy_j in energies_j),
    }


def _side(
    subject: Subject, energies_j: Sequence[float], durations_s: Sequence[float]
) -> Mapping[str, object]:
    return {
        "name": subject.name,
        "what": subject.what,
        "execution_j": median(energies_j) if energies_j else None,
        "execution_s": median(durations_s) if durations_s else None,
    }


def _verdict(energy: Interval) -> str:
    if not energy.clear_of_one:
        return "not told apart"
    return "as published" if energy.ratio > 1 else "the other way round"


def _gaps(readings: Sequence[Reading]) -> list[str]:
    return [reading.gap or "no reading" for reading in readings if reading.energy_j is None]


def _told(found: Interval | None) -> Mapping[str, object] | None:
    return None if found is None else asdict(found)


Rows = Sequence[Mapping[str, Any]]


def summary(operators: Rows, cases: Rows) -> Mapping[str, object]:
    """The figures that one looks for first; None where nothing of the kind was measured."""
    errors = [abs(found["replay"]["error"]) for found in operators if found["replay"]["error"] is not None]
    return {
        "replay_error_worst": max(errors, default=None),
        "long_known_to_worst": max((found["long"]["known_to"] for found in operators), default=None),
        "plain_error_median": _median([found["plain"]["absolute_error_median"] for found in operators]),
        "plain_single_error_median": _median(
            [found["plain_single"]["absolute_error_median"] for found in operators]
        ),
        "cases": {found["name"]: found["verdict"] for found in cases},
        "rejected_windows": sum(len(found["replay"]["rejected"]) for found in operators)
        + sum(len(found["rejected"]) for found in cases),
    }


def _median(figures: Sequence[float]) -> float | None:
    return median(figures) if figures else None
