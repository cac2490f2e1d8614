"""Windows over one board, and whether their energy may be believed.

Everything that speaks against a window ends in one sentence, its gap. In this order: the sensor failed,
the board was held down or shared, the window was too short, the counter lost energy or changed too seldom,
and power and counter contradict each other.
"""

from collections import Counter

from magneton.meters.agreement import Agreement
from magneton.meters.board import Board
from magneton.meters.board_state import DISTURBING, FLEETING, read_state
from magneton.meters.board_watch import BoardWatch
from magneton.meters.clock import Clock
from magneton.meters.foreign import Kin
from magneton.meters.losses import loss
from magneton.meters.meter import Reading, State, too_short
from magneton.meters.probe import BoardProbe
from magneton.meters.sampler import PowerSampler
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.windows import IDLE_EDGES, SETTLE_S, Estimate, flanked_energy, steady_energy

FEW_PIECES = 8  # fewer may not fit between edges: the window is flanked by rest instead
WORST_ERROR = 0.05  # of a window, as far as its edges tell


class BoardWindow:
    """One board's windows, one after the other: ``open``, the work, ``close``."""

    def __init__(self, board: Board, probe: BoardProbe, clock: Clock, kin: Kin) -> None:
        self.board = board
        self.probe = probe
        self.sampler = PowerSampler(board.instant_power_w, clock.now_s)
        self.lost = ""  # the board is, for good, and this is why
        self._clock = clock
        self._kin = kin
        self._agreement = Agreement(probe.agreement if probe.source == "counter" else None)
        self._watch: BoardWatch | None = None
        self._before = State()
        self._beside: tuple[float, float] | None = None

    def open(self, pieces: int) -> None:
        """From now on the board is watched, unless it is lost. Few pieces wait for edges at rest."""
        self.stop()
        if self.lost:
            return
        self._before = read_state(self.board, self._kin)
        self.sampler.open()
        watch = self._watch = BoardWatch(self.board, self.probe, self._clock, self._kin, self.sampler)
        if pieces < FEW_PIECES:
            watch.wait_for(lambda: len(watch.edges.seen) >= IDLE_EDGES)
        self._beside = self._read_beside()

    def close(self, began_s: float, ended_s: float, pieces: int, shortest_s: float) -> Reading:
        """What the window between these two moments spent."""
        duration_s, watch = ended_s - began_s, self._watch
        if watch is None:
            return Reading(duration_s=duration_s, energy_j=None, gap=self.lost)
        beside = self._read_beside()
        after = read_state(self.board, self._kin)
        if pieces < FEW_PIECES:
            seen = watch.edges.seen
            watch.wait_for(lambda: len(seen) >= IDLE_EDGES and seen[-IDLE_EDGES].seen_s > ended_s)
        self.stop()
        self.sampler.close(began_s, ended_s)
        if pieces < FEW_PIECES:
            estimate = flanked_energy(watch.edges.seen, began_s, ended_s, self.probe.period_s)
        else:
            estimate = steady_energy(watch.edges.seen, began_s, ended_s, pieces)
        agreement = self._agreed(estimate, began_s, ended_s, beside)
        even = self.probe.source == "counter" and duration_s <= pieces * self.probe.period_s / 4
        gap = (
            watch.fault
            or self._against_board(watch, after)
            or _against_length(duration_s, shortest_s)
            or self._against_edges(watch, estimate, began_s, ended_s)
            or self._agreement.objection(agreement, even=even)
        )
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
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()
            self.lost = watch.fault if watch.lost else ""

    def _read_beside(self) -> tuple[float, float] | None:
        """When and what, of a counter that is not what is watched: two reads far apart do it no harm."""
        if self.probe.source == "counter":
            return None
        try:
            return self._clock.now_s(), self.board.total_energy_j()
        except (SensorAbsent, SensorUnusable):
            return None

    def _agreed(
        self,
        estimate: Estimate | None,
        began_s: float,
        ended_s: float,
        beside: tuple[float, float] | None,
    ) -> float | None:
        """Energy by the other sensor over the estimate."""
        if estimate is None or ended_s <= began_s:
            return None
        mean_w = estimate.energy_j / (ended_s - began_s)
        if self.probe.source == "counter":
            power_w = self.sampler.mean_w(began_s + max(SETTLE_S, 2 * self.probe.period_s))
            return None if power_w is None else power_w / mean_w
        if beside is None or self._beside is None or beside[0] <= self._beside[0]:
            return None
        return (beside[1] - self._beside[1]) / (beside[0] - self._beside[0]) / mean_w

    def _against_board(self, watch: BoardWatch, after: State) -> str:
        """What the board's condition, around the window and in it, says against the window."""
        looks = watch.reasons + Counter([*self._before.throttle, *after.throttle])
        reasons = {reason for reason, seen in looks.items() if seen > 1 or reason != FLEETING}
        if disturbing := sorted(reasons & DISTURBING):
            return f"the clocks of {self.board.name} were held down: {', '.join(disturbing)}"
        foreign = max(watch.foreign, self._before.foreign or 0, after.foreign or 0)
        if foreign:
            return f"{foreign} foreign process{'es' * (foreign > 1)} computed on {self.board.name}"
        return ""

    def _against_edges(
        self, watch: BoardWatch, estimate: Estimate | None, began_s: float, ended_s: float
    ) -> str:
        edges, period_s = watch.edges.seen, self.probe.period_s
        if self.probe.source == "counter":
            lost = loss(edges, self.sampler.window, began_s, ended_s, period_s)
            if lost:
                return lost
        if estimate is None:
            return (
                f"the sensor of {self.board.name} changed too seldom in this window, or by less than at rest"
            )
        if estimate.error > WORST_ERROR:
            return f"changes of the sensor were seen too late: this window is known to {estimate.error:.0%}"
        return ""


def _against_length(duration_s: float, shortest_s: float) -> str:
    if not too_short(duration_s, shortest_s):
        return ""
    return f"the window lasted {duration_s:.2g} s; the sensor of this board needs {shortest_s:.2g} s"
