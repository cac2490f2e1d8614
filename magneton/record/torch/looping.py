"""Replay for a meter that cannot see one operator: each key is repeated until its window is long enough.

In: each operator of one step as it is about to run. Out: a ``ReplayReading`` for each key, per execution, or
the reason why there is none. The repetitions come first, on the real inputs; the step's own execution
follows, with everything as it was.

    first of its key    warm up | [op op op ... op] (window) | put back | op (the step's own)
    reads and writes    warm up | [op restore op restore ...] | [restore restore ...] | op
    cold caches         warm up | [op(copy 1) op(copy 2) ... op(copy k) op(copy 1) ...] | op
    launched slowly     warm up | [graph of 64 ops, graph of 64 ops, ...] | op

The cost of restoring is read in a window of its own and taken off.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from types import MappingProxyType
from typing import Any

import torch

from magneton.meters.meter import Reading
from magneton.profile.model import KeyId, ReplayReading
from magneton.record.request import Filled
from magneton.record.torch.calls import tensors_in
from magneton.record.torch.copies import Arguments, copied, last_level_bytes
from magneton.record.torch.graphs import EXECUTIONS, SLOWER, Graphs, may_capture
from magneton.record.torch.repeating import Restore, reason_to_skip, same_draws_after
from magneton.record.torch.results import Results
from magneton.record.windows import LONGER, TRIES, Windows, per_piece, without
from magneton.workload import Phase

OUT_OF_TIME = "time budget"
WARM_UP = 0.5  # of a window: clocks and temperature settle under the operator's own load
SETTLES_S = 1.0  # a sensor of a device is not asked before
CLOCK_TICK_S = 1e-9  # no execution takes less
ATTEMPTS = 4  # windows that turned out too short before the key is given up
PERIODS_BESIDE = 4  # of the sensor, that beginning and ending a window take
OVERRUN = 2.0  # times its budget that a replay may take where windows are rejected or operators slow
UNKNOWN_KERNELS: Mapping[KeyId, float] = MappingProxyType({})

Once = Callable[[], object]


def warm_up_s(windows: Windows) -> float:
    """How long an operator runs before it is read."""
    half_s = windows.shortest_window_s * WARM_UP
    return max(half_s, SETTLES_S) if windows.measures else half_s


def seconds_per_key(windows: Windows) -> float:
    """How long one key takes that needs no restoring."""
    return warm_up_s(windows) + windows.shortest_window_s * LONGER + PERIODS_BESIDE * windows.period_s


def dearest(
    costs: Iterable[tuple[KeyId, float]], seconds: Callable[[KeyId], float], budget_s: float
) -> Collection[KeyId]:
    """The keys whose executions cost most together, as many as can be read in ``budget_s``; of equals, those
    that came first. ``seconds`` is what reading a key takes."""
    total: defaultdict[KeyId, float] = defaultdict(float)
    for key_id, cost in costs:
        total[key_id] += cost
    chosen: set[KeyId] = set()
    for key_id in sorted(total, key=lambda key_id: -total[key_id]):
        if seconds(key_id) <= budget_s:
            budget_s -= seconds(key_id)
            chosen.add(key_id)
    return frozenset(chosen)


class LoopReader:
    """Reads each key once. ``chosen``: keys worth the time; None for all until ``budget_s`` is used up.

    ``kernels_s``: how long the kernels of one execution take on the device, where that is known.
    """

    def __init__(
        self,
        windows: Windows,
        *,
        budget_s: float,
        phase: Phase = "",
        chosen: Collection[KeyId] | None = None,
        cache: Filled = "warm",
        cache_bytes: Callable[[torch.device], int] = last_level_bytes,
        kernels_s: Mapping[KeyId, float] = UNKNOWN_KERNELS,
        graphs: Graphs | None = None,
    ) -> None:
        self._windows = windows
        self._phase = phase
        self._chosen = chosen
        self._cache: Filled = cache
        self._cache_bytes = cache_bytes
        self._kernels_s = kernels_s
        self._graphs = graphs
        self._until_s = windows.clock.now_s() + (budget_s if chosen is None else OVERRUN * budget_s)
        self._read: dict[KeyId, tuple[Reading, int]] = {}
        self._skipped: dict[KeyId, str] = {}
        self.warm: defaultdict[str, set[str]] = defaultdict(set)  # operators read warm, by what forbids cold
        self.differing: set[str] = set()  # operators that gave another result when they were repeated

    def execute(self, key_id: KeyId, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if key_id not in self._read and key_id not in self._skipped:
            reason = self._reason(key_id, func, args, kwargs)
            if reason is None:
                with same_draws_after(func, args, kwargs):
                    self._measure(key_id, func, args, kwargs)
            else:
                self._skipped[key_id] = reason
        return func(*args, **kwargs)

    def skipped(self) -> Mapping[KeyId, str]:
        return self._skipped

    def readings(self, round: int) -> Iterator[ReplayReading]:
        for key_id, (reading, executions) in self._read.items():
            kernels_s = self._kernels_s.get(key_id)
            yield ReplayReading(
                key_id=key_id,
                round=round,
                executions=executions,
                duration_s=reading.duration_s,
                energy_j=reading.energy_j,
                gap=reading.gap,
                busy_share=None if kernels_s is None else min(1.0, kernels_s / reading.duration_s),
            )

    def _reason(self, key_id: KeyId, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        reason = reason_to_skip(func, args, kwargs)
        if reason is not None:
            return reason
        if self._windows.lost:
            return self._windows.lost
        if self._chosen is not None and key_id not in self._chosen:
            return OUT_OF_TIME
        late = self._windows.clock.now_s() + seconds_per_key(self._windows) > self._until_s
        return OUT_OF_TIME if late else None

    def _measure(self, key_id: KeyId, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        restore = Restore(func, args, kwargs)
        results = Results(func, args, kwargs)
        if restore:
            restore()
        sets = self._arguments(func, args, kwargs)
        once = _rotating(func, sets, restore)
        kernels_s = self._kernels_s.get(key_id, 0.0) if may_capture(func, args, kwargs) else 0.0
        reading, executions = self._per_execution(once, at_least=len(sets), kernels_s=kernels_s)
        if restore:
            restoring, _ = self._per_execution(restore)
            reading = without(reading, restoring, why="no more than restoring its arguments")
        if results.differ():
            self.differing.add(str(func))
        if restore:
            restore()
        if reading.duration_s > 0:
            self._read[key_id] = (reading, executions)
        else:
            self._skipped[key_id] = "lost in the cost of restoring its arguments"

    def _arguments(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Arguments, ...]:
        if self._cache == "warm":
            return ((tuple(args), dict(kwargs)),)
        devices = {tensor.device for tensor in tensors_in((*args, kwargs))}
        cache_bytes = max(map(self._cache_bytes, devices), default=0)
        sets, reason = copied(func, args, kwargs, cache_bytes=cache_bytes)
        if reason:
            self.warm[reason].add(str(func))
        return sets

    def _per_execution(self, once: Once, *, at_least: int = 1, kernels_s: float = 0.0) -> tuple[Reading, int]:
        """One window over as many executions as the meter needs, per execution, and how many they were."""
        last_s = self._warm_up(once, at_least)
        together = 1
        if self._graphs is not None and 0 < SLOWER * kernels_s < last_s:
            together = -(-EXECUTIONS // at_least) * at_least
            replay = self._graphs.capture(once, together)
            if replay is None:
                together = 1
            else:
                once, last_s = replay, self._warm_up(replay, 1)
        pieces = max(1, round(self._windows.shortest_window_s * LONGER / last_s))
        reading, pieces = self._window(once, pieces, last_s)
        return per_piece(reading, pieces * together), pieces * together

    def _window(self, once: Once, pieces: int, piece_s: float) -> tuple[Reading, int]:
        """One window that is long enough, and over how many pieces it went."""
        windows, phase = self._windows, self._phase
        reading = windows.over(once, pieces, kind="replay", phase=phase, piece_s=piece_s, tries=TRIES)
        for _ in range(ATTEMPTS):
            if reading.duration_s >= windows.shortest_window_s or windows.lost:
                return reading, pieces
            pieces *= 2
            reading = windows.over(once, pieces, kind="replay", phase=phase, piece_s=piece_s, tries=TRIES)
        return replace(reading, energy_j=None, gap=reading.gap or "its windows stayed too short"), pieces

    def _warm_up(self, once: Once, at_least: int) -> float:
        """Run for a while, and say how long one execution then takes."""
        clock, wanted_s = self._windows.clock, warm_up_s(self._windows)
        executions, spent_s = at_least, 0.0
        while True:
            start_s = clock.now_s()
            for _ in range(executions):
                once()
            self._windows.synchronise()
            last_s = max(clock.now_s() - start_s, CLOCK_TICK_S)
            spent_s += last_s
            if spent_s >= wanted_s:
                return last_s / executions
            executions *= 2


def _rotating(func: Any, sets: Sequence[Arguments], restore: Restore) -> Once:
    """One execution a call, each on the next set of arguments."""
    if len(sets) > 1:
        turn = cycle(sets)

        def on_the_next() -> None:
            args, kwargs = next(turn)
            func(*args, **kwargs)

        return on_the_next
    args, kwargs = sets[0]
    if not restore:
        return lambda: func(*args, **kwargs)

    def and_back() -> None:
        func(*args, **kwargs)
        restore()

    return and_back
