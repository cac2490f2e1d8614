"""Windows under a meter, with all that makes a window of a slow sensor trustworthy.

In: something to repeat, and how often. Out: one reading. A window of a sensor that publishes in steps begins
at a random moment within such a step, and pauses where the sensor would else see the same part of the load
again and again (``rhythm``); what was drawn meanwhile is taken off, at the idle power. A window that was read
under bad conditions is read again, twice at most. A meter that is lost stays lost: windows then have a
duration and say why they have no energy.

    steady        sleep  [piece piece piece ... piece]
    in rhythm     sleep  [piece  piece piece  piece piece  piece] - idle power x pauses

For a meter that is read in place (no ``shortest_window_s``) nothing of this happens.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from magneton.meters.clock import Clock, SystemClock
from magneton.meters.meter import Meter, Reading, too_short, update_period_s, why_lost
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.profile.model import Doubt, IdlePower, Moment
from magneton.quantity import Provenance
from magneton.record.journal import Rejected, Stretch
from magneton.record.rhythm import pauses
from magneton.workload import Phase

TRIES = 3  # of one window
LONGER = 1.1  # windows are planned so much longer than the meter needs


def nothing_to_wait_for() -> None:
    """The device is the host: what was called has been done."""


class Windows:
    """One meter's windows over one system. ``synchronise`` waits for what was queued on the device.

    ``clock`` is what durations are taken with where the meter takes none, and what sleeps. ``sensor``: the
    meter that knows about the sensor, where ``meter`` is one around it.
    """

    def __init__(
        self,
        meter: Meter,
        synchronise: Callable[[], None] = nothing_to_wait_for,
        *,
        clock: Clock | None = None,
        sensor: Meter | None = None,
        seed: int = 0,
    ) -> None:
        self.meter = meter
        self.synchronise = synchronise
        self.clock: Clock = SystemClock() if clock is None else clock
        self.measures = meter.info().provenance is Provenance.MEASURED
        self.lost = ""  # why the meter cannot be read any more
        self.step_s: dict[Phase, float] = {}  # how long a step lasts, as far as a block has shown
        self._sensor = sensor or meter
        self.period_s = update_period_s(self._sensor)
        self._generator = Random(seed)
        self._idle: IdlePower | None = None
        self._notes: list[Rejected | Doubt] = []
        self._told_of_host = False
        self._began_s = 0.0

    @property
    def shortest_window_s(self) -> float:
        return self.meter.shortest_window_s

    def single(self, once: Callable[[], object]) -> Reading:
        """One window around one call, for meters that read single operators."""
        self.synchronise()
        self._begin(1)
        once()
        self.synchronise()
        return self._end()

    def over(
        self,
        once: Callable[[], object],
        pieces: int,
        *,
        kind: Stretch,
        phase: Phase,
        piece_s: float = 0.0,
        tries: int = 1,
    ) -> Reading:
        """One window over ``pieces`` calls. ``piece_s``: how long one lasts, as far as that is known."""
        reading = self._window(once, pieces, piece_s)
        for _ in range(tries - 1):
            if reading.energy_j is not None or not self._spoilt(reading):
                break
            self._notes.append(Rejected(kind=kind, phase=phase, why=reading.gap))
            reading = self._window(once, pieces, piece_s)
        if tries > 1 and self._spoilt(reading):
            self._notes.append(Rejected(kind=kind, phase=phase, why=reading.gap))
        return reading

    def rest(self, moment: Moment, length_s: float, *, now_s: float) -> IdlePower:
        """Power while nothing runs, from now on used for pauses. ``now_s``: since the recording's start."""
        self.synchronise()
        self.clock.sleep(self.shortest_window_s / 2)  # clocks and voltages follow
        reading = self.over(lambda: self.clock.sleep(length_s), 1, kind="idle", phase="", tries=TRIES)
        self._idle = IdlePower(
            moment=moment,
            time_s=now_s,
            duration_s=reading.duration_s,
            power_w=_power_w(reading.energy_j, reading.duration_s),
            host_power_w=_power_w(reading.host_energy_j, reading.duration_s),
        )
        return self._idle

    def take_notes(self) -> Sequence[Rejected | Doubt]:
        """What has to be told of the windows since the last call."""
        taken, self._notes = self._notes, []
        return taken

    def _spoilt(self, reading: Reading) -> bool:
        """Whether a window like this one may be read better: it was long enough, and the meter is there."""
        long_enough = not too_short(reading.duration_s, self.shortest_window_s)
        return bool(reading.energy_j is None and reading.gap and long_enough and not self.lost)

    def _window(self, once: Callable[[], object], pieces: int, piece_s: float) -> Reading:
        known = self._idle is not None and self._idle.power_w is not None  # what a pause draws
        pausing = pauses(piece_s, self.period_s, pieces, self._generator) if known else {}
        self.synchronise()
        if self.period_s > 0:
            self.clock.sleep(self._generator.uniform(0.0, self.period_s))
        self._begin(pieces)
        if not pausing:
            for _ in range(pieces):
                once()
            self.synchronise()
            return self._end()
        paused_s = 0.0
        for piece in range(pieces):
            if piece in pausing:
                paused_s += self._pause(pausing[piece])
            once()
        self.synchronise()
        return self._without_pauses(self._end(), paused_s)

    def _pause(self, length_s: float) -> float:
        self.synchronise()
        began_s = self.clock.now_s()
        self.clock.sleep(length_s)
        return self.clock.now_s() - began_s

    def _without_pauses(self, reading: Reading, paused_s: float) -> Reading:
        assert self._idle is not None
        paused = Reading(
            duration_s=paused_s,
            energy_j=_energy_j(self._idle.power_w, paused_s),
            host_energy_j=_energy_j(self._idle.host_power_w, paused_s),
        )
        return without(reading, paused, why="no more than the pauses in it")

    def _begin(self, pieces: int) -> None:
        self._began_s = self.clock.now_s()
        if self.lost:
            return
        try:
            self.meter.begin(pieces)
        except (SensorAbsent, SensorUnusable) as error:
            self._lose(str(error))

    def _end(self) -> Reading:
        if not self.lost:
            try:
                reading = self.meter.end()
            except (SensorAbsent, SensorUnusable) as error:
                self._lose(str(error))
            else:
                if reading.energy_j is None and (reason := why_lost(self._sensor)):
                    self._lose(reason)
                self._tell_of_host(reading.host_gap)
                return reading
        return Reading(duration_s=self.clock.now_s() - self._began_s, energy_j=None, gap=self.lost)

    def _tell_of_host(self, gap: str) -> None:
        """Once: what keeps the host from being read in one window usually does so in all that follow."""
        if gap and not self._told_of_host:
            self._told_of_host = True
            text = f"what the host spent beside the device was not read in some windows: {gap}"
            self._notes.append(Doubt(kind="host-not-read", text=text))

    def _lose(self, reason: str) -> None:
        self.lost = f"the meter was lost: {reason}"
        text = f"the meter was lost in the middle of the recording: {reason}; what was read before is kept"
        self._notes.append(Doubt(kind="meter-lost", text=text))


def without(whole: Reading, part: Reading, *, why: str) -> Reading:
    """What is left of ``whole``. Energy is known where both were read; a rest that is not positive is noise
    and no reading, for the reason ``why``."""
    energy_j = _difference(whole.energy_j, part.energy_j)
    lacking = "" if energy_j is not None else whole.gap or part.gap
    if energy_j is None and whole.energy_j is not None and part.energy_j is not None:
        lacking = why
    return replace(
        whole,
        duration_s=max(0.0, whole.duration_s - part.duration_s),
        energy_j=energy_j,
        gap=lacking,
        host_energy_j=_difference(whole.host_energy_j, part.host_energy_j),
    )


def per_piece(reading: Reading, pieces: float) -> Reading:
    """One of the ``pieces`` that were read together."""
    return replace(
        reading,
        duration_s=reading.duration_s / pieces,
        energy_j=None if reading.energy_j is None else reading.energy_j / pieces,
        host_energy_j=None if reading.host_energy_j is None else reading.host_energy_j / pieces,
    )


def _difference(whole: float | None, part: float | None) -> float | None:
    if whole is None or part is None or whole <= part:
        return None
    return whole - part


def _power_w(energy_j: float | None, duration_s: float) -> float | None:
    return None if energy_j is None or duration_s <= 0 else energy_j / duration_s


def _energy_j(power_w: float | None, duration_s: float) -> float | None:
    return None if power_w is None else power_w * duration_s
