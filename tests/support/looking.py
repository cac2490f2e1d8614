"""A load in virtual time, and a sensor that looks at a part of each period only."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from torch_steps import FakeClock, Stopped

from magneton.meters.clock import Watch
from magneton.meters.meter import Reading, State
from magneton.meters.sensors import SensorUnusable
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance


class Load(FakeClock):
    """A clock that remembers what was drawn while its time went by. Sleeping draws ``idle_w``."""

    def __init__(self, idle_w: float = 70.0, host_w: float = 0.0) -> None:
        super().__init__()
        self.idle_w = idle_w
        self.host_w = host_w
        self._starts_s = [0.0]
        self._spent_j = [0.0]
        self._power_w = [idle_w]

    def draw(self, seconds: float, power_w: float) -> None:
        """Time goes by at ``power_w``."""
        if power_w != self._power_w[-1]:
            self._spent_j.append(self.spent_j(self.now_s()))
            self._starts_s.append(self.now_s())
            self._power_w.append(power_w)
        super().spend(seconds)

    def spend(self, seconds: float) -> None:
        self.draw(seconds, self.idle_w)

    def spent_j(self, until_s: float) -> float:
        """Since the beginning."""
        place = bisect_right(self._starts_s, until_s) - 1
        return self._spent_j[place] + (until_s - self._starts_s[place]) * self._power_w[place]

    def watch(self, look: Callable[[], float]) -> Watch:
        look()
        return Stopped()


class LookingMeter:
    """Mean power during its looks, times the duration. ``look_s`` of every ``update_period_s`` are seen.

    ``gaps`` are what its next windows answer, "" being a reading. After ``lost_after`` windows it is lost.
    """

    def __init__(
        self,
        load: Load,
        *,
        update_period_s: float = 0.1,
        look_s: float = 0.025,
        shortest_window_s: float = 2.0,
        gaps: Sequence[str] = (),
        lost_after: int | None = None,
        host_w: float | None = None,
    ) -> None:
        self.update_period_s = update_period_s
        self.shortest_window_s = shortest_window_s
        self.began_s: list[float] = []
        self.pieces: list[int] = []
        self._load = load
        self._look_s = look_s
        self._gaps = list(gaps)
        self._left = lost_after
        self._host_w = host_w

    def info(self) -> MeterInfo:
        return MeterInfo(name="looking", unit="J", provenance=Provenance.MEASURED)

    def begin(self, pieces: int = 1) -> None:
        self.began_s.append(self._load.now_s())
        self.pieces.append(pieces)

    def end(self) -> Reading:
        if self._left is not None:
            if self._left == 0:
                raise SensorUnusable("the board has fallen off the bus", hint="restart the machine")
            self._left -= 1
        began_s, ended_s = self.began_s[-1], self._load.now_s()
        duration_s = ended_s - began_s
        gap = self._gaps.pop(0) if self._gaps else ""
        return Reading(
            duration_s=duration_s,
            energy_j=None if gap else self._seen_w(began_s, ended_s) * duration_s,
            gap=gap,
            host_energy_j=None if self._host_w is None else self._host_w * duration_s,
            agreement=1.02,
            before=State(temperature_c=50.0, throttle=("sw-power-cap", "sync-boost")),
            after=State(temperature_c=51.0, clock_hz=1.4e9, foreign=0),
        )

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held."""

    def _seen_w(self, began_s: float, ended_s: float) -> float:
        period_s, look_s = self.update_period_s, self._look_s
        first, last = -int(-began_s // period_s), int((ended_s - look_s) // period_s)
        looks_s = [number * period_s for number in range(first, last + 1)]
        if not looks_s:
            return (self._load.spent_j(ended_s) - self._load.spent_j(began_s)) / (ended_s - began_s)
        seen_j = sum(self._load.spent_j(at_s + look_s) - self._load.spent_j(at_s) for at_s in looks_s)
        return seen_j / (len(looks_s) * look_s)
