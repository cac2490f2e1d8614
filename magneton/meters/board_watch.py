"""What is looked at on a board while a window is open, from one watch of the clock.

Edges come first. Between them power is sampled, the board is asked why its clock is held down and, once a
second, who else is there.
"""

from collections import Counter
from collections.abc import Callable

from magneton.meters.board import Board, BoardLost
from magneton.meters.board_state import count_foreign, throttle_reasons
from magneton.meters.clock import Clock
from magneton.meters.edges import LONGEST_PERIOD_S, POLL_S, CounterEdges, Edges, PowerEdges
from magneton.meters.foreign import Kin
from magneton.meters.probe import BoardProbe
from magneton.meters.sampler import PERIOD_S, PowerSampler
from magneton.meters.sensors import SensorAbsent, SensorUnusable

_FREE_POLLS = 2.0  # to the next look for an edge: time for something else
_AGAIN_S = 1.0  # between looks at who else is there
_PATIENCE_S = 4 * LONGEST_PERIOD_S  # three edges, and what is left of the period before them


class BoardWatch:
    """Looks from when it is made until ``stop``. ``fault`` says why its edges must not be used, if so."""

    def __init__(
        self, board: Board, probe: BoardProbe, clock: Clock, kin: Kin, sampler: PowerSampler
    ) -> None:
        self.edges = _edges(board, probe, clock)
        self.reasons = Counter[str]()  # why clocks were held down, and in how many looks
        self.foreign = 0  # the most processes of others seen at once
        self.lost = False  # the board is, for good
        self._problem = ""
        self._board = board
        self._clock = clock
        self._kin = kin
        self._sampler = sampler
        self._edge_due_s = self._aside_due_s = self._who_due_s = clock.now_s()
        self._watch = clock.watch(self._look)

    @property
    def fault(self) -> str:
        return self._problem or self.edges.fault

    def wait_for(self, enough: Callable[[], bool]) -> None:
        """Until there are enough edges, or will be none."""
        give_up_s = self._clock.now_s() + _PATIENCE_S
        while not self.fault and not enough() and self._clock.now_s() < give_up_s:
            self._clock.sleep(POLL_S)

    def stop(self) -> None:
        self._watch.stop()

    def _look(self) -> float:
        """How long not to look. A sensor that refuses is not asked again in this window."""
        if self._problem:
            return LONGEST_PERIOD_S
        try:
            return self._look_closer()
        except (SensorAbsent, SensorUnusable) as error:
            self._problem = str(error)
            self.lost = isinstance(error, BoardLost)
            return LONGEST_PERIOD_S

    def _look_closer(self) -> float:
        now_s = self._clock.now_s()
        if now_s >= self._edge_due_s:
            wait_s = self.edges.look()
            now_s = self._clock.now_s()
            self._edge_due_s = now_s + wait_s
        # What has had to wait for long goes between two looks for an edge that does not come.
        free = self._edge_due_s - now_s > _FREE_POLLS * POLL_S or now_s > self._aside_due_s + PERIOD_S
        if free and now_s >= self._aside_due_s:
            self._look_aside(now_s)
            now_s = self._clock.now_s()
        next_s = min(self._edge_due_s, self._aside_due_s) if free else self._edge_due_s
        return max(next_s - now_s, POLL_S / 2)

    def _look_aside(self, now_s: float) -> None:
        self._aside_due_s = now_s + PERIOD_S
        self._sampler.sample()
        self.reasons.update(throttle_reasons(self._board))
        if now_s >= self._who_due_s:
            self._who_due_s = now_s + _AGAIN_S
            self.foreign = max(self.foreign, count_foreign(self._board, self._kin) or 0)


def _edges(board: Board, probe: BoardProbe, clock: Clock) -> Edges:
    if probe.source == "power":
        return PowerEdges(board.instant_power_w, clock.now_s, period_s=probe.period_s)
    return CounterEdges(board.total_energy_j, clock.now_s, period_s=probe.period_s, poll_s=probe.poll_s)
