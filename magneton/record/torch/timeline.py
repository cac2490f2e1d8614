"""The timeline pass: how long each traced operator takes, in the user's own configuration.

In: the operators that the dataflow pass traced, and one block of steps under PyTorch's profiler. Out: the
block's reading, a duration for each operator that was recognised, and spans (``Kernel``) for the first
block of a phase. Starting, stopping and reading the profiler happen outside what the meter reads.

On the host a duration is the time between entering and leaving the operator. Where kernels ran on a
device, durations are the time its kernels took there, 0.0 for an operator that launched none: the host
runs ahead, so its own times say when work was ordered, not how long it took.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

import torch
from torch.profiler import ProfilerActivity

from magneton.profile.model import BlockReading, Doubt, Kernel, KeyId, Operator, OpId
from magneton.record.blocks import run_block
from magneton.record.journal import Journal
from magneton.record.torch.alignment import align
from magneton.record.torch.spans import STEP, DeviceSpan, StepSpans, read_spans
from magneton.record.windows import Windows
from magneton.systems.running import RunningSystem
from magneton.workload import Phase

KERNEL_ROWS = 20_000  # spans kept of one phase
RECOGNISED = 0.9  # below this share of the traced operators the timeline gets a doubt
ELSEWHERE = "outside any operator"

_Shape = tuple[tuple[str, int], ...]


class Timeline:
    """The timeline pass of one phase. Keeps what the operators are called, and how they were recognised."""

    def __init__(
        self,
        phase: Phase,
        operators: Sequence[tuple[OpId, str]],
        *,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._phase = phase
        self._op_ids = tuple(op_id for op_id, _ in operators)
        self._names = tuple(name for _, name in operators)
        self._clock_s = clock_s
        self.durations_s: Mapping[OpId, float] = {}  # of the latest block
        self.on_device = False  # whether these are times of kernels on a device
        self._pairs: dict[_Shape, tuple[tuple[int, int], ...]] = {}
        self._told = False

    def run(
        self, system: RunningSystem, steps: int, round: int, windows: Windows, journal: Journal
    ) -> BlockReading:
        """One block under the profiler. The first one also leaves its spans in the journal."""
        profiler = torch.profiler.profile(activities=_activities())
        profiler.start()
        reading = run_block(
            system,
            self._phase,
            steps,
            round,
            windows,
            clock_s=self._clock_s,
            pass_="timeline",
            around_step=lambda: torch.profiler.record_function(STEP),
        )
        profiler.stop()
        spans = read_spans(profiler)
        self.durations_s = self._durations(spans)
        for op_id, duration_s in self.durations_s.items():
            journal.append_duration(op_id, duration_s)
        if not self._told and spans:
            self._told = True
            self._tell(spans[0], journal)
        return reading

    def kernels_s(self, operators: Sequence[Operator]) -> Mapping[KeyId, float]:
        """How long the kernels of one execution take on a device, of keys that were seen there."""
        if not self.on_device:
            return {}
        seen: defaultdict[KeyId, list[float]] = defaultdict(list)
        for operator in operators:
            if operator.op_id in self.durations_s:
                seen[operator.key_id].append(self.durations_s[operator.op_id])
        return {key_id: fmean(durations_s) for key_id, durations_s in seen.items()}

    def _durations(self, steps: Sequence[StepSpans]) -> Mapping[OpId, float]:
        """The mean over the block's steps, of the operators that were recognised in any."""
        self.on_device = any(span.kernels for step in steps for span in step.host)
        seen: defaultdict[OpId, list[float]] = defaultdict(list)
        for step in steps:
            for place, call in self._recognise(step):
                seen[self._op_ids[place]].append(_duration_s(step, call, self.on_device))
        return {op_id: fmean(durations_s) for op_id, durations_s in seen.items()}

    def _recognise(self, step: StepSpans) -> tuple[tuple[int, int], ...]:
        """Pairs (place among the operators, index of the call). Steps of one shape are aligned once."""
        shape = tuple((span.name, span.end) for span in step.host)
        if shape not in self._pairs:
            calls, ends = zip(*shape, strict=True) if shape else ((), ())
            self._pairs[shape] = align(self._names, calls, ends)
        return self._pairs[shape]

    def _tell(self, step: StepSpans, journal: Journal) -> None:
        pairs = self._recognise(step)
        if len(pairs) < RECOGNISED * len(self._names):
            share = f"{len(pairs)} of {len(self._names)} operators"
            text = f"{share} of {self._phase} were recognised in the timeline"
            journal.append(Doubt(kind="timeline-incomplete", text=text))
        for count, row in enumerate(self._rows(step, {call: self._op_ids[place] for place, call in pairs})):
            if count == KERNEL_ROWS:
                text = f"only {KERNEL_ROWS} spans of {self._phase} were kept"
                journal.append(Doubt(kind="timeline-cut", text=text))
                break
            journal.append(row)

    def _rows(self, step: StepSpans, op_ids: Mapping[int, OpId]) -> Iterator[Kernel]:
        """Spans that do not overlap on the host: operators, what else was called, and the rest in one row."""
        rest_s = step.duration_s
        call = 0
        while call < len(step.host):
            span = step.host[call]
            inside = range(call, span.end)
            if call not in op_ids and any(inner in op_ids for inner in inside):
                yield from (self._device_row(kernel, None) for kernel in span.kernels)
                call += 1
                continue
            op_id = op_ids.get(call)
            rest_s -= span.duration_s
            yield self._row(op_id, span.name, "cpu", span.start_s, span.duration_s)
            for inner in inside:
                yield from (self._device_row(kernel, op_id) for kernel in step.host[inner].kernels)
            call = span.end
        yield from (self._device_row(kernel, None) for kernel in step.loose)
        yield self._row(None, ELSEWHERE, "cpu", step.start_s, max(0.0, rest_s))

    def _device_row(self, span: DeviceSpan, op_id: OpId | None) -> Kernel:
        return self._row(op_id, span.name, span.device, span.start_s, span.duration_s)

    def _row(self, op_id: OpId | None, name: str, device: str, start_s: float, duration_s: float) -> Kernel:
        return Kernel(
            phase=self._phase, op_id=op_id, name=name, device=device, start_s=start_s, duration_s=duration_s
        )


def _activities() -> tuple[ProfilerActivity, ...]:
    if torch.cuda.is_available():
        return (ProfilerActivity.CPU, ProfilerActivity.CUDA)
    return (ProfilerActivity.CPU,)


def _duration_s(step: StepSpans, call: int, on_device: bool) -> float:
    span = step.host[call]
    if not on_device:
        return span.duration_s
    return sum(kernel.duration_s for inner in step.host[call : span.end] for kernel in inner.kernels)
