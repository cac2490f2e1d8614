"""A trace's events, sorted into steps, nested calls and the kernels they launched."""

from time import process_time
from typing import Any

import torch

from magneton.record.torch.spans import STEP, read_spans, steps_of


def event(category: str, name: str, ts: float, dur: float, *, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": args}


def mark(ts: float, dur: float) -> dict[str, Any]:
    return event("user_annotation", STEP, ts, dur)


def test_calls_come_outer_before_inner_with_the_end_of_what_is_inside():
    (step,) = steps_of(
        [
            mark(0, 100),
            event("cpu_op", "aten::view", 60, 5),
            event("cpu_op", "aten::addmm", 20, 20),
            event("cpu_op", "aten::linear", 10, 40),
            event("cpu_op", "aten::t", 11, 5),
            event("cpu_op", "aten::copy_", 25, 5),
        ]
    )
    assert [(span.name, span.end) for span in step.host] == [
        ("aten::linear", 4),
        ("aten::t", 2),
        ("aten::addmm", 4),
        ("aten::copy_", 4),
        ("aten::view", 5),
    ]


def test_neighbours_that_touch_are_not_nested():
    start = 5152682005097.332
    (step,) = steps_of(
        [
            mark(start - 1, 100),
            event("cpu_op", "first", start, 0.7),
            event("cpu_op", "second", start + 0.7, 0.3),
        ]
    )
    assert [(span.name, span.end) for span in step.host] == [("first", 1), ("second", 2)]


def test_each_step_keeps_its_own_calls_and_what_lies_between_is_dropped():
    steps = steps_of(
        [
            event("cpu_op", "rewind", 1, 2),
            mark(10, 10),
            event("cpu_op", "one", 12, 2),
            event("cpu_op", "rewind", 25, 2),
            mark(30, 10),
            event("cpu_op", "two", 32, 2),
        ]
    )
    assert [[span.name for span in step.host] for step in steps] == [["one"], ["two"]]
    assert [round(step.start_s * 1e6) for step in steps] == [0, 20]
    assert round(steps[1].host[0].start_s * 1e6) == 22
    assert round(steps[1].duration_s * 1e6) == 10


def test_calls_of_another_thread_are_not_nested_in_the_one_that_waits():
    (step,) = steps_of(
        [
            mark(0, 100),
            event("cpu_op", "forward", 1, 10),
            event("cpu_op", "backward", 20, 50, tid=2),
            event("cpu_op", "inner", 30, 5, tid=2),
            event("cpu_op", "waiter", 15, 60),
        ]
    )
    assert [(span.name, span.end) for span in step.host] == [
        ("forward", 1),
        ("waiter", 2),
        ("backward", 4),
        ("inner", 4),
    ]


def test_kernels_belong_to_the_call_that_launched_them_even_when_they_run_late():
    steps = steps_of(
        [
            mark(0, 10),
            event("cpu_op", "aten::mm", 1, 2, **{"External id": 7}),
            mark(20, 10),
            event("cpu_op", "aten::add", 21, 2, **{"External id": 8}),
            event("kernel", "gemm", 24, 30, tid=99, device=1, **{"External id": 7}),
            event("kernel", "graph", 26, 1, tid=99, device=1),
        ]
    )
    assert [kernel.name for kernel in steps[0].host[0].kernels] == ["gemm"]
    assert steps[0].host[0].kernels[0].device == "cuda:1"
    assert steps[0].loose == ()
    assert [kernel.name for kernel in steps[1].loose] == ["graph"]
    assert steps[1].host[0].kernels == ()


def test_no_steps_give_no_spans():
    assert steps_of([event("cpu_op", "aten::mm", 0, 1)]) == ()


def test_the_profiler_is_read_as_it_really_writes():
    x = torch.randn(4, 4)
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    profiler.start()
    for _ in range(2):
        with torch.profiler.record_function(STEP):
            torch.nn.functional.linear(x, x)
    profiler.stop()
    steps = read_spans(profiler)
    assert len(steps) == 2
    for step in steps:
        assert step.host[0].name == "aten::linear"
        assert step.host[0].end == len(step.host)
        assert 0 < step.host[0].duration_s <= step.duration_s


def test_the_cost_grows_with_the_events_and_not_with_steps_times_events():
    """A callable whose step takes microseconds fills a block with thousands of steps."""

    def cpu_s(steps: int) -> float:
        events = [mark(10 * i, 9) for i in range(steps)]
        events += [event("cpu_op", "aten::mul", 10 * i + k, 1) for i in range(steps) for k in range(4)]
        events += [event("kernel", "k", 10 * i + 2, 1) for i in range(steps)]
        began_s = process_time()
        assert len(steps_of(events)) == steps
        return process_time() - began_s

    # Eight times the events: about 8 times the work, or 64 times. A busy machine is not four times slower.
    assert min(cpu_s(8000) for _ in range(3)) < 32 * min(cpu_s(1000) for _ in range(3))
