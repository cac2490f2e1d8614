"""NVIDIA boards: the total-energy counter, read edge to edge, and instantaneous power on the side.

The device must have finished earlier work when ``begin`` is called, and the window's work when ``end`` is:
whoever runs the work synchronises. A window of many equal pieces costs no time besides; one of few waits
for three changes of the counter at rest before and after, which do not count as its duration. A device may be
several, joined by commas: their energies are summed. How far to trust it: docs/measuring.md.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from math import sqrt
from pathlib import Path
from typing import Any, ClassVar

from magneton.cache import cache_folder
from magneton.meters.board import load_nvml, open_board
from magneton.meters.board_window import FEW_PIECES, BoardWindow
from magneton.meters.clock import Clock, SystemClock
from magneton.meters.edges import POLL_S
from magneton.meters.foreign import own_kin
from magneton.meters.meter import Reading
from magneton.meters.probe import AGREE, BoardProbe
from magneton.meters.probe_cache import probed_board
from magneton.meters.several import sum_readings, sum_samples
from magneton.meters.visible import board_indices
from magneton.meters.windows import SETTLE_S
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

PERIODS = 20  # of the sensor in the shortest window worth reading
SHORTEST_S = 2.0
GAIN = 0.05  # of one board against another, and against a wall meter (arXiv 2312.02741)
_GOLDEN = (sqrt(5) - 1) / 2


class NvmlMeter:
    """Windows over the sensors of one board or several."""

    variants: ClassVar[tuple[str, ...]] = ()

    def __init__(self, boards: Sequence[BoardWindow], clock: Clock) -> None:
        self._boards = tuple(boards)
        self._clock = clock
        self.update_period_s = max(board.probe.period_s for board in boards)
        self.shortest_window_s = max(SHORTEST_S, PERIODS * self.update_period_s)
        self._pieces = 1
        self._turn = 0.5
        self._began_s = 0.0

    @classmethod
    def open(cls, variant: str, device: str) -> "NvmlMeter":
        del variant
        return open_nvml(
            load_nvml(), device, SystemClock(), environment=os.environ, probes=cache_folder() / "sensors"
        )

    @classmethod
    def check_device(cls, device: str) -> None:
        refuse_boards_without_counter(load_nvml(), device, environment=os.environ)

    @property
    def probes(self) -> tuple[BoardProbe, ...]:
        """What was found out about each board."""
        return tuple(board.probe for board in self._boards)

    @property
    def lost(self) -> str:
        """Why there will be no further reading; "" while all boards are there."""
        return "; ".join(board.lost for board in self._boards if board.lost)

    def info(self) -> MeterInfo:
        ratios = [1.0, *(ratio for probe in self.probes if (ratio := _doubted(probe)) is not None)]
        return MeterInfo(
            name="nvml",
            unit="J",
            provenance=Provenance.MEASURED,
            scale_low=(1 - GAIN) * min(ratios),
            scale_high=(1 + GAIN) * max(ratios),
            source="; ".join(_source(board) for board in self._boards),
            window_error=max(_window_error(probe, self.shortest_window_s) for probe in self.probes),
        )

    def begin(self, pieces: int = 1) -> None:
        self._pieces = pieces
        for board in self._boards:
            board.open(pieces)
        if pieces < FEW_PIECES and not self.lost:
            self._dephase()
        self._began_s = self._clock.now_s()

    def end(self) -> Reading:
        ended_s = self._clock.now_s()
        readings = [
            board.close(self._began_s, ended_s, self._pieces, self.shortest_window_s)
            for board in self._boards
        ]
        return readings[0] if len(readings) == 1 else sum_readings(readings)

    def samples(self) -> tuple[PowerSample, ...]:
        taken = [board.sampler.take() for board in self._boards]
        return taken[0] if len(taken) == 1 else sum_samples(taken)

    def close(self) -> None:
        for board in self._boards:
            board.stop()
            board.board.close()

    def _dephase(self) -> None:
        """Begin anywhere in a period, evenly over many windows.

        A sensor that looks at part of each period sees the end of a window or does not: windows that all
        began at an edge would all err alike.
        """
        self._turn = (self._turn + _GOLDEN) % 1.0
        self._clock.sleep(self._turn * self.update_period_s)


def open_nvml(
    nvml: Any, device: str, clock: Clock, *, environment: Mapping[str, str], probes: Path | None
) -> NvmlMeter:
    """A meter for ``device``. ``probes`` is where what boards are like is kept; None: probe, and forget."""
    kin = own_kin()
    with ExitStack() as opened:
        windows: list[BoardWindow] = []
        for index in board_indices(nvml, device, environment):
            board = open_board(nvml, index)
            opened.callback(board.close)
            windows.append(BoardWindow(board, probed_board(board, clock, probes), clock, kin))
        meter = NvmlMeter(windows, clock)
        opened.pop_all()
    return meter


def refuse_boards_without_counter(nvml: Any, device: str, *, environment: Mapping[str, str]) -> None:
    """What ``open_nvml`` would refuse, but for what only watching a counter shows."""
    for index in board_indices(nvml, device, environment):
        board = open_board(nvml, index)
        try:
            board.total_energy_j()
        finally:
            board.close()


def _doubted(probe: BoardProbe) -> float | None:
    """By how much the power sensor contradicts the counter, where it does."""
    ratio = probe.agreement
    return None if ratio is None or abs(ratio - 1) <= AGREE else ratio


def _source(window: BoardWindow) -> str:
    probe, board = window.probe, f"{window.board.name} ({window.board.uuid})"
    every = f"every {probe.period_s * 1e3:.0f} ms"
    gain = f"the gain of a board is off by up to {GAIN:.0%}"
    if probe.source == "power":
        return (
            f"instantaneous power of {board}, read {every}: its energy counter suffers from frequent reads; "
            f"{gain}"
        )
    text = f"energy counter of {board}, read edge to edge; it advances {every}; {gain}"
    ratio = _doubted(probe)
    return text if ratio is None else f"{text}; its power sensor shows {ratio:.2f} of the counter's power"


def _window_error(probe: BoardProbe, shortest_s: float) -> float:
    """Both edges of the shortest window known to one poll; of power, what its noise leaves of the mean."""
    inner_s = shortest_s - SETTLE_S - 2 * probe.period_s
    located = sqrt(2) * max(probe.poll_s if probe.source == "counter" else 0.0, POLL_S) / inner_s
    averaged = probe.noise * sqrt(probe.period_s / inner_s) if probe.source == "power" else 0.0
    return max(located, averaged)
