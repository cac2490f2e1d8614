"""How often and how long to measure, and in which order. No clock and no process in here.

Drift (a warming chip, a neighbour on the machine) must not look like a difference between the sides, so
they take turns, and the one that goes first changes from round to round:

    round            0      1      2      3
    side             B C    C B    B C    C B        (B baseline, C candidate)
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from magneton.profile.model import Pass
from magneton.workload import Phase

T = TypeVar("T")
WINDOWS_PER_BLOCK = 1.25  # the warm-up may have been slower than the blocks
MOST_STEPS = 100_000
SLOWEST = 5.0  # blocks may take this many times what the warm-up promised


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long a worker may stay silent. For blocks and replays: beyond their expected length."""

    prepare_s: float = 900.0
    trace_s: float = 900.0
    block_s: float = 120.0
    replay_s: float = 120.0
    pause_s: float = 30.0
    release_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlan:
    """Seven rounds give seven pairs: leaving out the highest and the lowest, so that one bad round does no
    harm, then widens an interval by a fifth only (``magneton.statistics``).

    Replays are as many where each operator takes a window of its own. Where operators are read in place
    a replay is no more than a step, and single executions are noisy: twice as many but one.
    """

    rounds: int = 7
    block_s: float = 0.3
    timeline_s: float = 0.1
    survey_s: float = 1.0  # some 300 samples: a share of a fifth is known to 5 points
    warm_up_s: float = 0.3
    replay_rounds: int = 7
    in_place_rounds: int = 13
    replay_budget_s: float = 300.0  # of one side, all its rounds and phases; for meters with long windows
    rest_s: float = 3.0  # of idling before and after, for meters that measure
    seed: int = 0  # of the moments at which windows begin
    settle_s: float = 1.0  # within which a paused side has to be idle
    timeouts: Timeouts = field(default_factory=Timeouts)

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.replay_rounds < 0 or self.in_place_rounds < 0:
            raise ValueError("a plan needs at least one round")

    def block_length_s(self, shortest_window_s: float) -> float:
        """A clean block long enough for the meter."""
        return max(self.block_s, WINDOWS_PER_BLOCK * shortest_window_s)

    def timeline_length_s(self, shortest_window_s: float) -> float:
        return max(self.timeline_s, WINDOWS_PER_BLOCK * shortest_window_s)

    def rest_length_s(self, shortest_window_s: float) -> float:
        return max(self.rest_s, WINDOWS_PER_BLOCK * shortest_window_s)

    def replays(self, shortest_window_s: float) -> int:
        """Rounds of the replay pass."""
        return self.replay_rounds if shortest_window_s > 0 else self.in_place_rounds

    def replay_call_s(self, phases: int) -> float:
        """The share of the budget that one round of one phase may use."""
        return self.replay_budget_s / max(1, self.replay_rounds * phases)

    def block_timeout_s(self, steps: int, step_s: float) -> float:
        return self.timeouts.block_s + SLOWEST * steps * step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One block of one side."""

    round: int
    pass_: Pass
    phase: Phase
    side: int


def order(items: Sequence[T], round: int) -> tuple[T, ...]:
    """``items`` in even rounds, backwards in odd ones."""
    return tuple(items) if round % 2 == 0 else tuple(reversed(items))


def turns(rounds: int, phases: Sequence[Phase], sides: int) -> Iterator[Turn]:
    """Every block of a recording. Passes swap places every other round: they meet either order of sides."""
    passes: tuple[Pass, ...] = ("clean", "timeline")
    for round in range(rounds):
        for pass_ in order(passes, round // 2):
            for phase in phases:
                for side in order(range(sides), round):
                    yield Turn(round=round, pass_=pass_, phase=phase, side=side)


def steps_for(length_s: float, step_s: float) -> int:
    """How many steps of ``step_s`` fill ``length_s``: at least one."""
    if step_s <= 0:
        return MOST_STEPS
    return max(1, min(MOST_STEPS, math.ceil(length_s / step_s)))
