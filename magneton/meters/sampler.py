"""Instantaneous power while a window is open, from a thread of its own."""

from collections.abc import Callable
from threading import Event, Thread

from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.profile.model import PowerSample

PERIOD_S = 0.1  # boards publish at this pace; reading faster returns the same figure and disturbs the work


class PowerSampler:
    """Samples from ``start`` to ``stop``, one at either end at least.

    A meter knows neither the phase and round nor when the recording started: samples carry "" and 0 and
    the meter's own clock, and the recorder fills those in.
    """

    def __init__(
        self,
        read_w: Callable[[], float | None],
        clock_s: Callable[[], float],
        *,
        period_s: float = PERIOD_S,
    ) -> None:
        self._read_w = read_w
        self._clock_s = clock_s
        self._period_s = period_s
        self._samples: list[PowerSample] = []
        self._stopping = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        self._stopping.clear()
        self._sample()
        self._thread = Thread(target=self._run, name="magneton-power-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._sample()

    def take(self) -> tuple[PowerSample, ...]:
        """The samples since the last call."""
        taken, self._samples = tuple(self._samples), []
        return taken

    def _run(self) -> None:
        while not self._stopping.wait(self._period_s):
            self._sample()

    def _sample(self) -> None:
        try:
            power_w = self._read_w()
        except (SensorAbsent, SensorUnusable):  # the energy counter says so too; a missing sample is a gap
            return
        if power_w is not None:
            self._samples.append(PowerSample(phase="", round=0, time_s=self._clock_s(), power_w=power_w))
