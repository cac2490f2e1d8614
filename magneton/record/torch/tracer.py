"""Passes 2 to 4 for PyTorch: dataflow, timeline, replay, over the same step.

In: a running system and a journal. Out: rows in the journal. Each pass rewinds the system before the step,
so that all of them do the same work; what a step returns under a pass is held against what it returns
alone, and a difference becomes a doubt.

    trace     step (alone)   step (rounded otherwise)  -> drift of each value
                             step (dataflow mode)      -> operators, values, ..., outputs
    timeline  steps under the profiler                 -> durations, spans
    replay    step (replay mode)                       -> readings per key
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from magneton.profile.model import BlockReading, Doubt, KeyId, Operator, ReplayKey, ValueId
from magneton.record.journal import Journal
from magneton.record.request import Filled
from magneton.record.torch.dataflow import Recorder
from magneton.record.torch.graphs import CudaGraphs, Graphs
from magneton.record.torch.in_place import InPlaceReader
from magneton.record.torch.looping import LoopReader, dearest, seconds_per_key
from magneton.record.torch.opening import Openings
from magneton.record.torch.recording import Trace
from magneton.record.torch.replay import KeyReader, ReplayMode
from magneton.record.torch.rounding import Rounder, drifts
from magneton.record.torch.timeline import Timeline
from magneton.record.windows import Windows
from magneton.systems.outputs import finish_outputs
from magneton.systems.running import RunningSystem
from magneton.workload import Phase

Outputs = Mapping[str, NDArray[np.generic]]
NOT_REPEATED = ("view", "sync")
NAMES_TOLD = 3  # of operators, in a doubt


def synchronise() -> None:
    """Wait for the device, if the system uses one."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


@dataclass(slots=True, kw_only=True)
class _Traced:
    """What is remembered of a traced phase for the passes that follow."""

    operators: tuple[Operator, ...]
    timeline: Timeline
    outputs: Outputs  # of the step alone, uncompiled
    chosen: Collection[KeyId] | None = None  # the keys that replay has time for: the same in each round


class TorchTracer:
    """``magneton.record.tracer.Tracer`` for PyTorch. One per recording: it remembers what it traced."""

    def __init__(
        self, *, clock_s: Callable[[], float] = time.monotonic, graphs: Graphs | None = None
    ) -> None:
        self._clock_s = clock_s
        self._graphs = graphs or (CudaGraphs() if torch.cuda.is_available() else None)
        self._openings = Openings()
        self._recorder = Recorder(openings=self._openings)
        self._rounder = Rounder(self._openings)
        self._traced: dict[Phase, _Traced] = {}
        self._read: set[KeyId] = set()
        self._skipped: dict[KeyId, str] = {}

    def trace(self, system: RunningSystem, phase: Phase, journal: Journal) -> None:
        outputs = _outputs_alone(system, phase)
        noisy = self._trace_rounded(system, phase)
        with system.uncompiled():
            system.rewind(phase)
            with self._recorder.phase(phase, system.roots()) as recording:
                returned = system.step(phase)
        watched = finish_outputs(returned)
        expected = outputs if _equal(outputs, watched) else _outputs_uncompiled(system, phase)
        _compare("dataflow", phase, expected, watched, journal)
        _write(recording.trace, drifts(recording.trace, noisy), journal)
        for name, array in outputs.items():
            journal.save_output(f"{phase}.{name}", array)
        operators = recording.trace.operators
        named = [(operator.op_id, operator.name) for operator in operators]
        self._traced[phase] = _Traced(
            operators=operators,
            timeline=Timeline(phase, named, clock_s=self._clock_s),
            outputs=expected,
        )

    def _trace_rounded(self, system: RunningSystem, phase: Phase) -> Trace:
        """Before the dataflow pass, whose outputs show whether the noise has left anything behind."""
        with system.uncompiled():
            system.rewind(phase)
            with self._rounder.phase(phase, system.roots()) as recording:
                system.step(phase)
        return recording.trace

    def timeline(
        self, system: RunningSystem, phase: Phase, steps: int, round: int, windows: Windows, journal: Journal
    ) -> BlockReading:
        return self._traced[phase].timeline.run(system, steps, round, windows, journal)

    def replay(
        self,
        system: RunningSystem,
        phase: Phase,
        round: int,
        windows: Windows,
        journal: Journal,
        budget_s: float,
        cache: Filled = "warm",
    ) -> None:
        traced = self._traced[phase]
        reader = self._reader(traced, phase, windows, budget_s, cache)
        mode = ReplayMode(self._recorder.key_ids, reader, openings=self._openings, traced=traced.operators)
        with system.uncompiled(), torch.compiler.set_stance("force_eager"):  # as the dataflow pass ran
            system.rewind(phase)
            with mode:
                returned = system.step(phase)
        windows.synchronise()
        _compare("replay", phase, traced.outputs, finish_outputs(returned), journal)
        if mode.strangers:
            text = (
                f"{mode.strangers} of {mode.executed} operators of {phase} were not met in the dataflow pass"
            )
            journal.append(Doubt(kind="replay-deviates", text=text))
        if isinstance(reader, LoopReader):
            for doubt in _doubts(reader, phase):
                journal.append(doubt)
        for row in reader.readings(round):
            journal.append(row)
            self._now_read(row.key_id, journal)
        for key_id, reason in reader.skipped().items():
            self._now_skipped(key_id, reason, journal)

    def _reader(
        self, traced: _Traced, phase: Phase, windows: Windows, budget_s: float, cache: Filled
    ) -> KeyReader:
        if windows.shortest_window_s == 0.0:
            return InPlaceReader(windows.meter, windows.synchronise)
        if traced.chosen is None:
            traced.chosen = _chosen(traced, windows, budget_s)
        return LoopReader(
            windows,
            budget_s=budget_s,
            phase=phase,
            chosen=traced.chosen,
            cache=cache,
            kernels_s=traced.timeline.kernels_s(traced.operators),
            graphs=self._graphs,
        )

    def _now_read(self, key_id: KeyId, journal: Journal) -> None:
        self._read.add(key_id)
        if self._skipped.pop(key_id, None) is not None:
            journal.append(ReplayKey(key_id=key_id, skipped=None))

    def _now_skipped(self, key_id: KeyId, reason: str, journal: Journal) -> None:
        """A key that was read in any round or phase is not one that was skipped."""
        if key_id not in self._read and self._skipped.get(key_id) != reason:
            self._skipped[key_id] = reason
            journal.append(ReplayKey(key_id=key_id, skipped=reason))


def _outputs_alone(system: RunningSystem, phase: Phase) -> Outputs:
    """Of a step that nothing watches. It is the second one: the first fills caches that stay filled."""
    system.rewind(phase)
    system.step(phase)
    system.rewind(phase)
    return finish_outputs(system.step(phase))


def _outputs_uncompiled(system: RunningSystem, phase: Phase) -> Outputs:
    """Of a step as the passes that see operators run it: compiled code rounds otherwise."""
    with system.uncompiled(), torch.compiler.set_stance("force_eager"):
        return _outputs_alone(system, phase)


def _write(trace: Trace, drift: Mapping[ValueId, float], journal: Journal) -> None:
    values = (replace(value, drift=drift.get(value.value_id)) for value in trace.values)
    for row in (*trace.operators, *values, *trace.stacks, *trace.keys):
        journal.append(row)
    for value_id, sketch in trace.sketches:
        journal.append_sketch(value_id, sketch)


def _equal(one: Outputs, other: Outputs) -> bool:
    return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)


def _compare(name: str, phase: Phase, alone: Outputs, watched: Outputs, journal: Journal) -> None:
    """A doubt where a pass changed what the step computes."""
    differing = sorted(
        output
        for output in alone.keys() | watched.keys()
        if output not in alone or output not in watched or not _same(alone[output], watched[output])
    )
    if differing:
        text = f"{', '.join(differing)} of {phase} under the {name} pass differ from those of the step alone"
        journal.append(Doubt(kind="passes-disagree", text=text))


def _same(alone: NDArray[np.generic], watched: NDArray[np.generic]) -> bool:
    """Bit for bit, where NaN is NaN."""
    inexact = np.issubdtype(alone.dtype, np.inexact)
    return alone.dtype == watched.dtype and np.array_equal(alone, watched, equal_nan=inexact)


def _chosen(traced: _Traced, windows: Windows, budget_s: float) -> Collection[KeyId]:
    """The keys worth the time, such that there is time for all of them in every round."""
    restored = {operator.key_id for operator in traced.operators if operator.mutated}
    once_s = seconds_per_key(windows)
    return dearest(_costs(traced), lambda key_id: 2 * once_s if key_id in restored else once_s, budget_s)


def _costs(traced: _Traced) -> Iterator[tuple[KeyId, float]]:
    """What is known of each operator's cost: its time, or the bytes it moves if no timeline was taken."""
    durations_s = traced.timeline.durations_s
    for operator in traced.operators:
        if operator.effect not in NOT_REPEATED:
            duration_s = durations_s.get(operator.op_id, 0.0)
            yield operator.key_id, duration_s if durations_s else operator.bytes_moved


def _doubts(reader: LoopReader, phase: Phase) -> Iterator[Doubt]:
    for reason, names in sorted(reader.warm.items()):
        text = f"operators of {phase} were repeated with warm caches, for {reason}: {_listed(names)}"
        yield Doubt(kind="cache-warm", text=text)
    if reader.differing:
        text = (
            f"operators of {phase} gave another result when they were repeated: {_listed(reader.differing)}"
        )
        yield Doubt(kind="repeats-differ", text=text)


def _listed(names: Collection[str]) -> str:
    first = sorted(names)[:NAMES_TOLD]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")
