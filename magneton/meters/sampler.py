"""Instantaneous power while a window is open, some ten times a second."""

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.profile.model import PowerSample

PERIOD_S = 0.09  # boards publish every 100 ms: a little sooner, and a look right after each edge takes one


class PowerSampler:
    """Takes a sample when it is asked.

    A meter knows neither the phase and round nor when the recording started: samples carry "" and 0 and
    the meter's own clock, and the recorder fills those in.
    """

    def __init__(self, read_w: Callable[[], float | None], now_s: Callable[[], float]) -> None:
        self._read_w = read_w
        self._now_s = now_s
        self._window: list[PowerSample] = []
        self._kept: list[PowerSample] = []

    def open(self) -> None:
        """A window begins."""
        self._window = []

    def sample(self) -> None:
        """Power now, where there is any to be read; else the energy counter will say why not."""
        with suppress(SensorAbsent, SensorUnusable):
            power_w = self._read_w()
            if power_w is not None:
                self._window.append(PowerSample(phase="", round=0, time_s=self._now_s(), power_w=power_w))

    def close(self, began_s: float, ended_s: float) -> None:
        """The window was this long; samples around it are not kept."""
        self._window = [sample for sample in self._window if began_s <= sample.time_s <= ended_s]
        self._kept += self._window

    @property
    def window(self) -> tuple[PowerSample, ...]:
        """The samples of the window closed last."""
        return tuple(self._window)

    def mean_w(self, since_s: float) -> float | None:
        """Mean power of the window closed last, each sample for the time since the one before it."""
        since = [sample for sample in self._window if sample.time_s >= since_s]
        if len(since) < 3:
            return None
        spent_j = sum(after.power_w * (after.time_s - before.time_s) for before, after in pairwise(since))
        return spent_j / (since[-1].time_s - since[0].time_s)

    def take(self) -> tuple[PowerSample, ...]:
        """The samples since the last call."""
        taken, self._kept = tuple(self._kept), []
        return taken
