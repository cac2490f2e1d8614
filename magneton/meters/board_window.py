"""Windows over one board: what is watched while one is open, and whether its energy may be believed.

While a window is open one watch follows the counter from edge to edge, takes instantaneous power, asks why
clocks are held down and, once a second, who else is there. Everything that speaks against a window ends in
one sentence, its gap.
"""

from collections import Counter
from collections.abc import Callable

from magneton.meters.agreement import Agreement
from magneton.meters.board import Board, BoardLost
from magneton.meters.board_state import DISTURBING, FLEETING, count_foreign, read_state, throttle_reasons
from magneton.meters.clock import Clock, Watch
from magneton.meters.edges import LONGEST_PERIOD_S, POLL_S, CounterEdges, Edges, PowerEdges
from magneton.meters.foreign import Kin
from magneton.meters.losses import loss
from magneton.meters.meter import Reading, State
from magneton.meters.probe import BoardProbe
from magneton.meters.sampler import PERIOD_S, PowerSampler
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.windows import (
    IDLE_EDGES,
    SETTLE_S,
    Estimate,
    flanked_energy,
    steady_energy,
)

FEW_PIECES = 8  # fewer may not fit between edges: the window is flanked by rest instead
WORST_ERROR = 0.05  # of a window, as far as its edges tell
_FREE_POLLS = 2.0
_AGAIN_S = 1.0  # between looks at who else is there


class BoardWindow:
    """One board's windows, one after the other: ``open``, ``await_rest`` if flanked, the work, ``close``."""

    def __init__(self, board: Board, probe: BoardProbe, clock: Clock, kin: Kin) -> None:
        self.board = board
        self.probe = probe
        self._clock = clock
        self._kin = kin
        self._sampler = PowerSampler(board.instant_power_w, clock.now_s)
        self._agreement = Agreement(probe.agreement if probe.source == "counter" else None)
        self.lost = ""  # the board is, for good, and this is why
        self._watch: Watch | None = None
        self._open()

    @property
    def sampler(self) -> PowerSampler:
        return self._sampler

    def open(self) -> None:
        """From now on the board is watched."""
        self.stop()
        self._open()
        if self.lost:
            return
        self._before = read_state(self.board, self._kin)
        self._sampler.open()
        self._alone = self._counter()
        self._watch = self._clock.watch(self._look)

    def await_rest(self) -> None:
        """Until enough edges have been seen at rest."""
        self._await(lambda: len(self._edges.seen) >= IDLE_EDGES)
        self._alone = self._counter()

    def close(self, began_s: float, ended_s: float, pieces: int, shortest_s: float) -> Reading:
        """What the window between these two moments spent."""
        duration_s = ended_s - began_s
        if self._watch is None:
            return Reading(duration_s=duration_s, energy_j=None, gap=self.lost)
        alone = self._counter()
        after = read_state(self.board, self._kin)
        if pieces < FEW_PIECES:
            self._await(lambda: self._rested(ended_s))
        self.stop()
        self._sampler.close(began_s, ended_s)
        estimate = self._estimate(began_s, ended_s, pieces)
        agreement = self._agreed(estimate, began_s, ended_s, alone)
        gap = self._against(after) or self._against_length(duration_s, shortest_s)
        gap = gap or self._against_edges(estimate, began_s, ended_s)
        even = self.probe.source == "counter" and duration_s <= pieces * self.probe.period_s / 4
        gap = gap or self._agreement.objection(agreement, even=even)
        return Reading(
            duration_s=duration_s,
            energy_j=None if estimate is None or gap else estimate.energy_j,
            gap=gap,
            agreement=agreement,
            before=self._before,
            after=after,
        )

    def stop(self) -> None:
        """The board is watched no longer."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _open(self) -> None:
        self._edges = self._new_edges()
        self._before: State | None = None
        self._fault = ""
        self._reasons = Counter[str]()
        self._foreign = 0
        self._edge_due_s = self._aside_due_s = self._who_due_s = self._clock.now_s()
        self._alone: tuple[float, float] | None = None

    def _new_edges(self) -> Edges:
        now_s, period_s = self._clock.now_s, self.probe.period_s
        if self.probe.source == "power":
            return PowerEdges(self.board.instant_power_w, now_s, period_s=period_s)
        return CounterEdges(self.board.total_energy_j, now_s, period_s=period_s, poll_s=self.probe.poll_s)

    def _look(self) -> float:
        if self._fault:
            return LONGEST_PERIOD_S
        try:
            return self._look_closer()
        except BoardLost as error:
            self._fault = self.lost = str(error)
        except (SensorAbsent, SensorUnusable) as error:
            self._fault = str(error)
        return LONGEST_PERIOD_S

    def _look_closer(self) -> float:
        """First the edges; the rest when none is awaited, or when it has had to wait for long."""
        now_s = self._clock.now_s()
        if now_s >= self._edge_due_s:
            wait_s = self._edges.look()
            now_s = self._clock.now_s()
            self._edge_due_s = now_s + wait_s
        free = self._edge_due_s - now_s > _FREE_POLLS * POLL_S or now_s > self._aside_due_s + PERIOD_S
        if free and now_s >= self._aside_due_s:
            self._look_aside()
            now_s = self._clock.now_s()
        next_s = min(self._edge_due_s, self._aside_due_s) if free else self._edge_due_s
        return max(next_s - now_s, POLL_S / 2)

    def _look_aside(self) -> None:
        now_s = self._clock.now_s()
        self._aside_due_s = now_s + PERIOD_S
        self._sampler.sample()
        self._reasons.update(throttle_reasons(self.board))
        if now_s >= self._who_due_s:
            self._who_due_s = now_s + _AGAIN_S
            self._foreign = max(self._foreign, count_foreign(self.board, self._kin) or 0)

    def _await(self, enough: Callable[[], bool]) -> None:
        give_up_s = self._clock.now_s() + 2 * LONGEST_PERIOD_S
        while self._watched and not enough() and self._clock.now_s() < give_up_s:
            self._clock.sleep(POLL_S)

    @property
    def _watched(self) -> bool:
        """Whether there is still something to wait for."""
        return self._watch is not None and not self._fault and not self._edges.fault

    def _rested(self, ended_s: float) -> bool:
        seen = self._edges.seen
        return len(seen) >= IDLE_EDGES and seen[-IDLE_EDGES].seen_s > ended_s

    def _counter(self) -> tuple[float, float] | None:
        """When and what; where the counter is what is watched, it is not read besides."""
        if self.probe.source == "counter":
            return None
        try:
            return self._clock.now_s(), self.board.total_energy_j()
        except (SensorAbsent, SensorUnusable):
            return None

    def _estimate(self, began_s: float, ended_s: float, pieces: int) -> Estimate | None:
        edges = self._edges.seen
        if pieces < FEW_PIECES:
            return flanked_energy(edges, began_s, ended_s, self.probe.period_s)
        return steady_energy(edges, began_s, ended_s, pieces)

    def _agreed(
        self, estimate: Estimate | None, began_s: float, ended_s: float, alone: tuple[float, float] | None
    ) -> float | None:
        """Energy by the other sensor over the estimate."""
        if estimate is None or ended_s <= began_s:
            return None
        mean_w = estimate.energy_j / (ended_s - began_s)
        if self.probe.source == "counter":
            settled_s = began_s + max(SETTLE_S, 2 * self.probe.period_s)
            power_w = self._sampler.mean_w(settled_s)
            return None if power_w is None else power_w / mean_w
        if alone is None or self._alone is None or alone[0] <= self._alone[0]:
            return None
        return (alone[1] - self._alone[1]) / (alone[0] - self._alone[0]) / mean_w

    def _against(self, after: State) -> str:
        """What the sensors and the board's condition say against the window."""
        if self._fault or self._edges.fault:
            return self._fault or self._edges.fault
        states = [state for state in (self._before, after) if state is not None]
        for state in states:
            self._reasons.update(state.throttle)
        reasons = {reason for reason, looks in self._reasons.items() if looks > 1 or reason != FLEETING}
        if disturbing := sorted(reasons & DISTURBING):
            return f"the clocks of {self.board.name} were held down: {', '.join(disturbing)}"
        foreign = max(self._foreign, *(state.foreign or 0 for state in states))
        if foreign:
            return f"{foreign} foreign process{'es' * (foreign > 1)} computed on {self.board.name}"
        return ""

    def _against_length(self, duration_s: float, shortest_s: float) -> str:
        """A plan may miss its length by a little, and by no more than half."""
        if 2 * duration_s >= shortest_s:
            return ""
        return f"the window lasted {duration_s:.2g} s; the sensor of this board needs {shortest_s:.2g} s"

    def _against_edges(self, estimate: Estimate | None, began_s: float, ended_s: float) -> str:
        if self.probe.source == "counter":
            lost = loss(self._edges.seen, self._sampler.window, began_s, ended_s, self.probe.period_s)
            if lost:
                return lost
        if estimate is None:
            return (
                f"the sensor of {self.board.name} changed too seldom, or by less than at rest, in this window"
            )
        if estimate.error > WORST_ERROR:
            return (
                f"changes of the counter were seen too late: the window is known to {estimate.error:.0%} only"
            )
        return ""
