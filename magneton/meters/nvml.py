"""NVIDIA boards: the total-energy counter, read edge to edge, and instantaneous power on the side.

The device must have finished earlier work when ``begin`` is called, and the window's work when ``end`` is:
whoever runs the work synchronises. ``begin`` waits for two changes of the counter and ``end`` for one,
some 300 ms per window that do not count as its duration. How far to trust it: docs/measuring.md.
"""

import os
import time
from collections.abc import Callable
from typing import ClassVar

from magneton.meters.board import Board, board_index, load_nvml, open_board
from magneton.meters.counter import Counter, Edge, probe_counter, window_energy_j
from magneton.meters.meter import Reading
from magneton.meters.sampler import PowerSampler
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

PERIODS = 20  # of the counter in the shortest window worth reading: quantisation and idle tail below 1 %
SHORTEST_S = 2.0
GAIN = 0.05  # of one board against another, and against a wall meter (arXiv 2312.02741)


class NvmlMeter:
    """Windows over one board's energy counter. Probing it costs a second when the meter is opened."""

    variants: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        board: Board,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._board = board
        self._clock_s = clock_s
        self._counter = Counter(read_j=board.total_energy_j, clock_s=clock_s, sleep=sleep)
        self._probe = probe_counter(self._counter, f"the energy counter of {board.name}")
        self.shortest_window_s = max(SHORTEST_S, PERIODS * self._probe.period_s)
        offers_power = board.instant_power_w() is not None
        self._sampler = PowerSampler(board.instant_power_w, clock_s) if offers_power else None
        self._edges: tuple[Edge, Edge] | None = None
        self._began_s = 0.0

    @classmethod
    def open(cls, variant: str, device: str) -> "NvmlMeter":
        del variant
        nvml = load_nvml()
        board = open_board(nvml, board_index(nvml, device, os.environ))
        try:
            return cls(board)
        except (SensorAbsent, SensorUnusable):
            board.close()
            raise

    def info(self) -> MeterInfo:
        period_ms = self._probe.period_s * 1e3
        return MeterInfo(
            name="nvml",
            unit="J",
            provenance=Provenance.MEASURED,
            scale_low=1 - GAIN,
            scale_high=1 + GAIN,
            source=(
                f"energy counter of {self._board.name} ({self._board.uuid}), read edge to edge; it advances "
                f"every {period_ms:.0f} ms; the gain of a board is off by up to {GAIN:.0%}"
            ),
        )

    def begin(self, pieces: int = 1) -> None:
        del pieces
        first, start = self._next_edge(), self._next_edge()
        self._edges = (first, start) if first is not None and start is not None else None
        if self._sampler is not None:
            self._sampler.start()
        self._began_s = start.time_s if start is not None else self._clock_s()

    def end(self) -> Reading:
        ended_s = self._clock_s()
        if self._sampler is not None:
            self._sampler.stop()
        duration_s = ended_s - self._began_s
        stop = self._next_edge()
        readable = 2 * duration_s >= self.shortest_window_s  # a plan may miss its length by a little
        if self._edges is None or stop is None or not readable:
            return Reading(duration_s=duration_s, energy_j=None)
        return Reading(duration_s=duration_s, energy_j=window_energy_j(*self._edges, ended_s, stop))

    def samples(self) -> tuple[PowerSample, ...]:
        return () if self._sampler is None else self._sampler.take()

    def close(self) -> None:
        self._board.close()

    def _next_edge(self) -> Edge | None:
        try:
            return self._counter.next_edge()
        except (SensorAbsent, SensorUnusable):  # gone in the middle of a recording: a gap, not a crash
            return None
