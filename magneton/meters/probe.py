"""What the sensors of a board are like, found out by watching them for some seconds.

Some boards publish stale figures when their counter is read often (on an RTX 4090 95 % of the energy is
missing at two thousand reads a second, 13 % at ten), and on some the counter and the power sensor disagree.
So the counter is first left alone for a while and read at either end, then polled, and its power is
compared: with itself, and with instantaneous power meanwhile.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean, median, pstdev
from typing import Literal

from magneton.meters.board import Board
from magneton.meters.clock import Clock
from magneton.meters.counter import Counter, steps_of
from magneton.meters.edges import LONGEST_PERIOD_S, Edge
from magneton.meters.sensors import SensorUnusable

Source = Literal["counter", "power"]

POLLS_S = (1e-3, 5e-3, 2e-2)  # how often to look for an edge: the first that leaves the counter alone
SPARSE_S = 3.0
POLLED_S = 1.2
POLLED_EDGES = 12
SAMPLE_S = 0.1
LEFT_ALONE = 0.9  # a polled counter that shows less than this of the power of one left alone is disturbed
AGREE = 0.1  # power and counter of one board should differ by no more
USUAL_PERIOD_S = 0.1
_POWER_POLL_S = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardProbe:
    """What the sensors of one board do.

    ``source`` is what energy is read from: "power" where looking at the counter disturbs it. ``agreement`` is
    instantaneous power over that by the counter; None where the board does not offer it. ``noise`` is the
    relative deviation of single figures of power at rest.
    """

    period_s: float  # between changes of the source
    step_j: float  # of one change at the power of the moment
    poll_s: float  # how often it may be read while an edge is awaited
    fields: tuple[int, ...]  # of NVML, for power and energy, that are offered
    agreement: float | None
    noise: float
    stale: bool  # reading the counter often disturbs it
    source: Source
    probed_at: str  # ISO 8601, UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """The counter's power over some time, and instantaneous power meanwhile."""

    counter_w: float
    samples_w: tuple[float, ...]
    edges: tuple[Edge, ...] = ()

    @property
    def power_w(self) -> float | None:
        return fmean(self.samples_w) if self.samples_w else None


def probe_board(board: Board, clock: Clock) -> BoardProbe:
    """Watch a board's sensors, some five seconds where they are in order. The load should not change."""
    what = f"the energy counter of {board.name}"
    fields = board.offered_fields()
    alone = _left_alone(board, clock)
    if alone.counter_w <= 0:
        problem = "runs backwards" if alone.counter_w < 0 else f"did not change within {SPARSE_S:g} s"
        raise SensorUnusable(
            f"{what} {problem}",
            hint="see whether nvidia-smi shows a changing power draw; or reload the driver",
        )
    stale = False
    for poll_s in POLLS_S:
        polled = _polled(board, clock, poll_s)
        if len(polled.edges) >= 3 and _relative(polled, alone) >= LEFT_ALONE:
            steps = steps_of(polled.edges, what)
            return BoardProbe(
                period_s=steps.period_s,
                step_j=steps.step_j,
                poll_s=poll_s,
                fields=fields,
                agreement=_agreement(polled),
                noise=_noise(alone.samples_w + polled.samples_w),
                stale=stale,
                source="counter",
                probed_at=_today(),
            )
        stale = True
    return _by_power(board, clock, alone, fields)


def _by_power(board: Board, clock: Clock, alone: _Stretch, fields: tuple[int, ...]) -> BoardProbe:
    agreement = _agreement(alone)
    if agreement is None or abs(agreement - 1) > AGREE:
        power = "there is no instantaneous power" if agreement is None else f"power is {agreement:.2f} of it"
        raise SensorUnusable(
            f"the energy counter of {board.name} is disturbed by being read, and {power}",
            hint="update the driver, measure on another board, or use --meter zeus with blocks of a minute",
        )
    period_s = _power_period_s(board, clock)
    return BoardProbe(
        period_s=period_s,
        step_j=alone.counter_w * period_s,
        poll_s=period_s,
        fields=fields,
        agreement=agreement,
        noise=_noise(alone.samples_w),
        stale=True,
        source="power",
        probed_at=_today(),
    )


def _left_alone(board: Board, clock: Clock) -> _Stretch:
    """Two reads of the counter, far apart."""
    began_s, began_j = clock.now_s(), board.total_energy_j()
    samples_w: list[float] = []
    while clock.now_s() < began_s + SPARSE_S:
        clock.sleep(SAMPLE_S)
        _append(samples_w, board.instant_power_w())
    ended_s, ended_j = clock.now_s(), board.total_energy_j()
    return _Stretch(counter_w=(ended_j - began_j) / (ended_s - began_s), samples_w=tuple(samples_w))


def _polled(board: Board, clock: Clock, poll_s: float) -> _Stretch:
    """Edge after edge."""
    counter = Counter(read_j=board.total_energy_j, clock_s=clock.now_s, sleep=clock.sleep, poll_s=poll_s)
    edges: list[Edge] = []
    samples_w: list[float] = []
    sampled_s = clock.now_s()
    enough_s, give_up_s = sampled_s + POLLED_S, sampled_s + 2 * SPARSE_S
    while clock.now_s() < (enough_s if len(edges) >= POLLED_EDGES else give_up_s):
        edge = counter.next_edge()
        if edge is None:
            break
        edges.append(edge)
        if edge.seen_s >= sampled_s + 0.9 * SAMPLE_S:
            sampled_s = edge.seen_s
            _append(samples_w, board.instant_power_w())
    if len(edges) < 3:
        return _Stretch(counter_w=0.0, samples_w=tuple(samples_w))
    counter_w = (edges[-1].energy_j - edges[0].energy_j) / (edges[-1].time_s - edges[0].time_s)
    return _Stretch(counter_w=counter_w, samples_w=tuple(samples_w), edges=tuple(edges))


def _power_period_s(board: Board, clock: Clock) -> float:
    """Between changes of published power; what is usual, where it does not change."""
    changes_s: list[float] = []
    began_s, before_w = clock.now_s(), board.instant_power_w()
    while clock.now_s() < began_s + LONGEST_PERIOD_S:
        clock.sleep(_POWER_POLL_S)
        power_w = board.instant_power_w()
        if power_w != before_w:
            changes_s.append(clock.now_s())
        before_w = power_w
    if len(changes_s) < POLLED_EDGES // 2:
        return USUAL_PERIOD_S
    return median(after - before for before, after in pairwise(changes_s))


def _append(samples_w: list[float], power_w: float | None) -> None:
    if power_w is not None:
        samples_w.append(power_w)


def _relative(polled: _Stretch, alone: _Stretch) -> float:
    """Power by the polled counter over that by the one left alone, less what the load changed."""
    drift = polled.power_w / alone.power_w if polled.power_w and alone.power_w else 1.0
    return polled.counter_w / alone.counter_w / drift


def _agreement(stretch: _Stretch) -> float | None:
    return None if not stretch.power_w else stretch.power_w / stretch.counter_w


def _noise(samples_w: tuple[float, ...]) -> float:
    mean_w = fmean(samples_w) if samples_w else 0.0
    return pstdev(samples_w) / mean_w if mean_w > 0 else 0.0


def _today() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
