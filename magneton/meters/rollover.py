"""Energy since a moment, from a counter that starts again from 0 when its range is full.

In: a zone and a clock. Out: joules, or the reason why they are not known. A counter that went down has
wrapped, or was reset: only a known range, looks often enough and an energy that a processor can
spend tell the first from the second. What is doubtful is no reading.
"""

from magneton.meters.clock import Clock
from magneton.meters.powercap import Zone
from magneton.meters.sensors import SensorUnusable

MOST_W = 2000.0  # more than any package draws: whatever rises faster was reset, or is another counter
RAREST_LOOK_S = 10.0
_SPARE = 2.0  # looks come so many times sooner than the counter can wrap
_STEP_S = 0.01  # a counter that publishes rarely rises by as much at once
_UJ = 1e-6


class Rollover:
    """One counter. ``gap`` says why ``energy_j`` is no reading; "" while it is one."""

    def __init__(self, zone: Zone, clock: Clock) -> None:
        self.zone = zone
        self.gap = ""
        self._clock = clock
        self._total_uj = 0
        self._last_uj: int | None = None
        self._last_s = 0.0

    @property
    def energy_j(self) -> float:
        """Since ``restart``, up to the latest look."""
        return self._total_uj * _UJ

    @property
    def look_every_s(self) -> float:
        """How often to look, so that a wrap is seen before the next one."""
        if self.zone.range_uj is None:
            return RAREST_LOOK_S
        return min(RAREST_LOOK_S, self.zone.range_uj * _UJ / MOST_W / _SPARE)

    def restart(self) -> None:
        """From here on; a counter that could not be read gets its next chance."""
        self._total_uj = 0
        self.gap = ""
        self._last_uj = self._read()

    def look(self) -> None:
        """Add what was spent since the last look."""
        before_uj, before_s = self._last_uj, self._last_s
        if before_uj is None:  # unreadable, and the reason is noted
            return
        now_uj = self._last_uj = self._read()
        if now_uj is None:
            return
        elapsed_s = self._clock.now_s() - before_s  # at most: either look may have waited for its turn
        risen_uj = now_uj - before_uj
        if risen_uj < 0:
            risen_uj += self.zone.range_uj or 0
        self.gap = self.gap or self._doubt(before_uj, now_uj, risen_uj, elapsed_s)
        self._total_uj += risen_uj

    def _doubt(self, before_uj: int, now_uj: int, risen_uj: int, elapsed_s: float) -> str:
        """Why the rise is not what was spent; "" if it is."""
        name, range_uj = self.zone.label, self.zone.range_uj
        if risen_uj < 0 and range_uj is None:
            return f"the counter of {name} went down, and {self.zone.path} does not tell its range"
        if not 0 <= risen_uj * _UJ <= MOST_W * (elapsed_s + _STEP_S):
            return (
                f"the counter of {name} went from {before_uj} to {now_uj} uJ in {elapsed_s:.3g} s: "
                f"no processor draws more than {MOST_W:.0f} W, so it was reset"
            )
        if range_uj is not None and elapsed_s * MOST_W > range_uj * _UJ:
            return (
                f"nobody looked at the counter of {name} for {elapsed_s:.3g} s, in which it may have "
                "wrapped more than once"
            )
        return ""

    def _read(self) -> int | None:
        asked_s = self._clock.now_s()
        try:
            value_uj = self.zone.energy_uj()
        except SensorUnusable as error:
            self.gap = self.gap or str(error)
            return None
        self._last_s = asked_s
        return value_uj
