"""How much time a validation may take, and how long its windows may therefore be."""

from dataclasses import dataclass

from magneton.meters.clock import Clock

LONGEST_PAUSE_S = 0.25  # at rest, before a plain window
EDGES_S = 0.5  # until the counter has changed at either end of a long window


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Of the windows of one validation. ``window_s`` below: what one of the meter's windows takes."""

    warm_up_s: float
    long_s: float  # of the one long window of an operator
    idle_s: float
    replays: int
    plain_windows: int
    plain_s: float
    pairs: int  # of a case, and of windows with the meter and without

    def operator_s(self, window_s: float) -> float:
        plain_s = self.plain_windows * (self.plain_s + 2 * LONGEST_PAUSE_S)
        return self.warm_up_s + self.long_s + EDGES_S + self.replays * window_s + plain_s

    def case_s(self, window_s: float) -> float:
        return 2 * self.warm_up_s + 2 * self.pairs * window_s

    def overhead_s(self, window_s: float) -> float:
        return self.warm_up_s + 2 * self.pairs * window_s


GENEROUS = Lengths(warm_up_s=1.0, long_s=8.0, idle_s=3.0, replays=6, plain_windows=8, plain_s=0.2, pairs=7)
USUAL = Lengths(warm_up_s=0.8, long_s=6.0, idle_s=2.0, replays=5, plain_windows=6, plain_s=0.2, pairs=5)
SHORT = Lengths(warm_up_s=0.5, long_s=4.0, idle_s=1.0, replays=3, plain_windows=4, plain_s=0.2, pairs=4)


class Budget:
    """Seconds that are left, by the clock of the bench."""

    def __init__(self, clock: Clock, budget_s: float) -> None:
        self._clock = clock
        self._began_s = clock.now_s()
        self.budget_s = budget_s

    def spent_s(self) -> float:
        return self._clock.now_s() - self._began_s

    def left_s(self) -> float:
        return self.budget_s - self.spent_s()

    def lengths(self, window_s: float, operators: int, cases: int) -> Lengths:
        """The longest with which all parts find room in what is left, or the shortest there are."""
        for lengths in (GENEROUS, USUAL):
            planned_s = lengths.idle_s + lengths.overhead_s(window_s)
            planned_s += operators * lengths.operator_s(window_s) + cases * lengths.case_s(window_s)
            if planned_s <= self.left_s():
                return lengths
        return SHORT
