"""The order of a recording.

    load | trace | warm up | survey | rest | blocks, sides in turn | replays, sides in turn | rest

All workers are alive from beginning to end; while one measures the other is paused.
"""

import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from magneton.profile.model import Moment, Profile
from magneton.record.journal import is_traced
from magneton.record.plan import RecordPlan, order, turns
from magneton.record.progress import Progress
from magneton.record.request import RecordRequest
from magneton.record.side import Side
from magneton.workload import Phase


class Recording:
    """One recording of one or two sides. Its methods are called in the order in which they stand here.

    ``earlier``: folders of sides that were measured before, apart from these, and still have to be kept.
    """

    def __init__(
        self, plan: RecordPlan, progress: Progress, folder: Path, *, earlier: tuple[Path, ...] = ()
    ) -> None:
        self.folder = folder
        self._plan = plan
        self._progress = progress
        self._earlier = earlier
        self._sides: list[Side] = []
        self._setting_up: Side | None = None
        self._done = 0
        self._total = 0

    def start(self, request: RecordRequest, name: str) -> Side:
        """A side whose worker runs; the caller sees to its end."""
        side = Side(request, self._plan, self.folder / name, seed=self._plan.seed + len(self._sides))
        self._sides.append(side)
        return side

    def set_up(self) -> None:
        """Load, trace and warm up every side: afterwards it is known that they fit into memory together."""
        started_s = time.monotonic()
        session = uuid.uuid4().hex if len(self._sides) > 1 else ""
        self._total = len(self._sides)
        continuation = None
        for side in self._sides:
            self._setting_up = side
            self._begin(f"loading {side.label}")
            side.prepare(session=session, started_s=started_s, continuation=continuation)
            continuation = continuation or side.continuation
        self._total += self._stretches()
        self._each_phase("tracing", Side.trace)
        if not self._counts_only():
            self._each_phase("warming up", Side.warm_up)
        self._setting_up = None

    def measure(self) -> None:
        """Nothing to do for a meter that counts: the trace holds its figures."""
        if self._counts_only():
            return
        for side in self._sides:
            self._pause(side)
        self._survey()
        self._rest("before")
        self._measure_blocks()
        self._measure_replays()
        self._rest("after")

    def finish(self) -> tuple[Profile, ...]:
        profiles = tuple(side.release() for side in self._sides)
        self._progress.update(self._total, self._total, "recorded")
        return profiles

    def journals(self) -> tuple[Path, ...]:
        """Folders of the sides whose trace is complete."""
        return (*self._earlier, *(side.journal for side in self._sides if is_traced(side.journal)))

    def crowded(self) -> bool:
        """Whether the present failure came while a second side was being fitted in beside the first."""
        return len(self._sides) > 1 and self._setting_up is self._sides[-1]

    def discard(self) -> None:
        """End the workers and remove what they have written."""
        for side in self._sides:
            side.close()
            shutil.rmtree(side.journal)

    def _survey(self) -> None:
        """One side after the other: a drift between them leaves the shares of a step alone."""
        for side in self._sides:
            for phase in side.phases:
                self._begin(f"surveying {phase} of {side.label}")
                side.survey(phase)
                self._pause(side)

    def _rest(self, moment: Moment) -> None:
        """Every side is paused; what one reads on a board that both are on is the power of both at rest."""
        for side in self._sides:
            if side.measures:
                self._begin(f"reading idle power: {side.label}")
                side.rest(moment)

    def _measure_blocks(self) -> None:
        for turn in turns(self._plan.rounds, self._phases(), len(self._sides)):
            side = self._sides[turn.side]
            if turn.phase in side.phases:
                self._begin(f"round {turn.round + 1} of {self._plan.rounds}: {turn.phase} of {side.label}")
                side.block(turn)
                self._pause(side)

    def _measure_replays(self) -> None:
        for round in range(self._replays()):
            for phase in self._phases():
                for side in order(self._sides, round):
                    if phase in side.phases:
                        self._begin(f"replaying operators: {phase} of {side.label}")
                        side.replay(phase, round)
                        self._pause(side)

    def _each_phase(self, doing: str, work: Callable[[Side, Phase], None]) -> None:
        for side in self._sides:
            for phase in side.phases:
                self._begin(f"{doing} {phase} of {side.label}")
                work(side, phase)

    def _pause(self, side: Side) -> None:
        if len(self._sides) > 1:
            side.pause()

    def _phases(self) -> tuple[Phase, ...]:
        return tuple(dict.fromkeys(phase for side in self._sides for phase in side.phases))

    def _replays(self) -> int:
        """Equal on all sides, so that rounds pair: as many as the side with the longest window can take."""
        return self._plan.replays(max(side.shortest_window_s for side in self._sides))

    def _counts_only(self) -> bool:
        return all(side.counts_only for side in self._sides)

    def _stretches(self) -> int:
        """Pieces of work after loading: trace, warm-up and survey, two passes per round, replays, rests."""
        per_phase = 1 if self._counts_only() else 3 + 2 * self._plan.rounds + self._replays()
        rests = sum(2 for side in self._sides if side.measures)
        return per_phase * sum(len(side.phases) for side in self._sides) + rests

    def _begin(self, text: str) -> None:
        self._progress.update(self._done, self._total, text)
        self._done += 1
