"""What PyTorch's profiler saw, as plain spans.

In: a stopped profiler. Out: per step of the block, the operators on the host in order, nested, and the
kernels that each launched. The profiler's own trace file is the way out of it: public, and far
cheaper than its tree of Python objects.

    step   |-- aten::linear -------------------------|  aten::view  ...
               aten::t   aten::addmm ------------|
    device                   (gemm kernel) ===========
"""

import json
import tempfile
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import torch

STEP = "magneton.step"  # the annotation around each step
_ON_DEVICE = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))
_NS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpan:
    """One kernel, copy or fill on a device."""

    name: str
    device: str  # "cuda:0"
    start_s: float
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpan:
    """One call of an operator on the host. Those inside it follow it directly, up to index ``end``."""

    name: str  # "aten::addmm"
    start_s: float
    duration_s: float
    end: int  # index in ``StepSpans.host`` of the first span outside it
    kernels: tuple[DeviceSpan, ...]  # launched by this call itself, not by those inside it


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpans:
    """One step. Times are from the start of the first step of the block."""

    start_s: float
    duration_s: float
    host: tuple[HostSpan, ...]  # in order of start, outer before inner
    loose: tuple[DeviceSpan, ...]  # kernels that no operator launched: graphs, other libraries


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """Whole nanoseconds, so that neighbours never seem to be nested."""

    name: str
    start_ns: int
    stop_ns: int
    thread: int
    call: int | None  # ties a kernel to the operator that launched it


def read_spans(profiler: torch.profiler.profile) -> tuple[StepSpans, ...]:
    """The steps that ``profiler`` saw, each marked by an annotation called ``STEP``."""
    with tempfile.TemporaryDirectory(prefix="magneton-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        trace = json.loads(path.read_bytes())
    return steps_of(trace["traceEvents"])


def steps_of(events: Iterable[Mapping[str, Any]]) -> tuple[StepSpans, ...]:
    """Sort the events of a trace into steps."""
    marks: list[_Event] = []
    host: list[_Event] = []
    device: list[tuple[_Event, str]] = []
    for raw in events:
        category = raw.get("cat")
        if category == "cpu_op":
            host.append(_event(raw))
        elif category == "user_annotation" and raw["name"] == STEP:
            marks.append(_event(raw))
        elif category in _ON_DEVICE:
            device.append((_event(raw), f"cuda:{raw['args'].get('device', 0)}"))
    marks.sort(key=attrgetter("start_ns"))
    host.sort(key=attrgetter("start_ns"))
    origin_ns = marks[0].start_ns if marks else 0
    launched, loose = _launched(origin_ns, host, device)
    return tuple(_step(mark, origin_ns, _within(mark, host), launched, loose) for mark in marks)


def _event(raw: Mapping[str, Any]) -> _Event:
    start_ns = round(raw["ts"] * 1000)
    return _Event(
        name=raw["name"],
        start_ns=start_ns,
        stop_ns=start_ns + round(raw["dur"] * 1000),
        thread=raw["tid"],
        call=raw.get("args", {}).get("External id"),
    )


def _within(mark: _Event, events: Sequence[_Event]) -> Sequence[_Event]:
    """Those of ``events``, which are in order, that start during the step: found without a look at the rest,
    for a block of short steps has thousands."""
    start = attrgetter("start_ns")
    return events[
        bisect_left(events, mark.start_ns, key=start) : bisect_left(events, mark.stop_ns, key=start)
    ]


def _step(
    mark: _Event,
    origin_ns: int,
    host: Sequence[_Event],
    launched: Mapping[int | None, Sequence[DeviceSpan]],
    loose: Sequence[tuple[int, DeviceSpan]],
) -> StepSpans:
    ordered = _nested(host)
    first, last = (bisect_left(loose, at_ns, key=itemgetter(0)) for at_ns in (mark.start_ns, mark.stop_ns))
    return StepSpans(
        start_s=(mark.start_ns - origin_ns) * _NS,
        duration_s=(mark.stop_ns - mark.start_ns) * _NS,
        host=tuple(
            HostSpan(
                name=event.name,
                start_s=(event.start_ns - origin_ns) * _NS,
                duration_s=(event.stop_ns - event.start_ns) * _NS,
                end=end,
                kernels=tuple(launched.get(event.call, ())),
            )
            for event, end in ordered
        ),
        loose=tuple(span for _, span in loose[first:last]),
    )


def _launched(
    origin_ns: int, host: Sequence[_Event], device: Sequence[tuple[_Event, str]]
) -> tuple[Mapping[int | None, Sequence[DeviceSpan]], Sequence[tuple[int, DeviceSpan]]]:
    """Kernels by the call that launched them, and those that no operator launched, in order, by their start.

    Devices lag behind the host: a kernel belongs to the step of its call, whenever it ran.
    """
    calls = {event.call for event in host if event.call is not None}
    launched: defaultdict[int | None, list[DeviceSpan]] = defaultdict(list)
    loose: list[tuple[int, DeviceSpan]] = []
    for event, name in device:
        span = DeviceSpan(
            name=event.name,
            device=name,
            start_s=(event.start_ns - origin_ns) * _NS,
            duration_s=(event.stop_ns - event.start_ns) * _NS,
        )
        if event.call in calls:
            launched[event.call].append(span)
        else:
            loose.append((event.start_ns, span))
    return launched, sorted(loose, key=itemgetter(0))


def _nested(events: Sequence[_Event]) -> list[tuple[_Event, int]]:
    """The events in order, each with the index where what is inside it ends.

    Trees are built per thread and laid out one after the other: the backward pass may run in a thread
    of its own while the caller waits.
    """
    threads: defaultdict[int, list[_Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event.start_ns, -event.stop_ns)):
        threads[event.thread].append(event)
    roots = [root for of_thread in threads.values() for root in _roots(of_thread)]
    roots.sort(key=lambda root: root[0].start_ns)
    ordered: list[tuple[_Event, int]] = []
    for root in roots:
        first = len(ordered)
        ordered += [(event, first + end) for event, end in zip(root, _ends(root), strict=True)]
    return ordered


def _roots(events: Sequence[_Event]) -> list[list[_Event]]:
    """Cut one thread's events into outermost calls, each with what is inside it."""
    roots: list[list[_Event]] = []
    for event in events:
        if roots and event.start_ns < roots[-1][0].stop_ns:
            roots[-1].append(event)
        else:
            roots.append([event])
    return roots


def _ends(root: Sequence[_Event]) -> list[int]:
    """For each event of one outermost call, how many events precede the first one outside it."""
    ends = [len(root)] * len(root)
    enclosing: list[int] = []
    for place, event in enumerate(root):
        while enclosing and event.start_ns >= root[enclosing[-1]].stop_ns:
            ends[enclosing.pop()] = place
        enclosing.append(place)
    return ends
