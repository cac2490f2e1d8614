"""Operators that are written in Python: opened where that explains them, else one operator."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from custom_operators import ops
from torch import Tensor
from torch_steps import ClockMeter

from magneton.profile.model import Profile
from magneton.record.torch.capture import trace_callable
from magneton.record.torch.dataflow import Recorder
from magneton.record.torch.in_place import InPlaceReader
from magneton.record.torch.opening import Openings
from magneton.record.torch.replay import ReplayMode
from magneton.record.torch.tracer import synchronise
from magneton.workload import CALL


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def names(profile: Profile) -> list[str]:
    return [op.name.split(".")[1] for op in profile.operators if op.effect not in ("view", "alloc")]


def attention(query: Tensor, cache: Tensor) -> Tensor:
    out = torch.empty(2, 2)
    ops.attend(query, cache, out)
    return out * 2.0


def attention_to_ones(query: Tensor) -> Tensor:
    return attention(query, torch.ones(2, 2))


def bare(query: Tensor) -> Tensor:
    out = torch.empty(2, 2)
    ops.bare(query, out)
    return out * 2.0


def half_bare(query: Tensor) -> Tensor:
    out = torch.empty(2, 2)
    return ops.half_bare(query, out) + out


def test_what_is_inside_is_seen_and_the_rest_is_not_there():
    profile = trace_callable(attention, (torch.rand(2, 2), torch.rand(2, 2)))
    assert names(profile) == ["add_", "mm", "_softmax", "copy_", "mul"]


def test_the_result_comes_from_the_operators_inside():
    profile = trace_callable(attention, (torch.rand(2, 2), torch.rand(2, 2)))
    copy, product = profile.operators[-2:]
    assert set(product.inputs) & set(copy.outputs)


def test_with_drift_an_operator_explained_in_part_is_closed_from_the_start():
    assert names(trace_callable(half_bare, (torch.rand(2, 2),), with_drift=True)) == ["half_bare", "add"]


@pytest.mark.parametrize("with_drift", [False, True])
def test_work_past_the_dispatcher_is_the_operators_own(with_drift: bool):
    profile = trace_callable(bare, (torch.rand(2, 2),), with_drift=with_drift)
    assert names(profile) == ["bare", "mul"]
    own, product = (op for op in profile.operators if op.effect == "compute")
    assert set(product.inputs) & set(own.outputs)


def test_an_operator_that_is_explained_in_part_closes():
    """The first time it stands beside what is inside it; from then on alone."""
    query, openings = torch.rand(2, 2), Openings()
    recorder = Recorder(openings=openings)
    for expected in (["add", "half_bare", "add"], ["half_bare", "add"]):
        with recorder.phase(CALL, {}) as recording:
            half_bare(query)
        kept = [op.name.split(".")[1] for op in recording.trace.operators if op.effect == "compute"]
        assert kept == expected


@pytest.mark.parametrize("step", [attention_to_ones, bare, half_bare], ids=["opened", "closed", "in part"])
def test_replay_cuts_as_the_trace_does(step: Callable[[Tensor], Tensor]):
    query, openings = torch.rand(2, 2), Openings()
    recorder = Recorder(openings=openings)
    for _ in range(2):  # as the pass under noise comes before the trace
        with recorder.phase(CALL, {}):
            step(query)
    reader = InPlaceReader(ClockMeter(), synchronise)
    mode = ReplayMode(recorder.key_ids, reader, openings=openings)
    with mode:
        replayed = step(query)
    assert mode.strangers == 0
    torch.testing.assert_close(replayed, step(query), rtol=0, atol=0)


def test_every_key_belongs_to_an_operator():
    profile = trace_callable(attention, (torch.rand(2, 2), torch.rand(2, 2)))
    assert {op.key_id for op in profile.operators} == {key.key_id for key in profile.keys}


@pytest.mark.parametrize("step", [attention, bare, half_bare])
def test_nothing_is_changed_by_being_watched(step: Callable[..., Any]):
    def arguments() -> tuple[Tensor, ...]:
        return (torch.full((2, 2), 0.5), torch.ones(2, 2))[: 2 if step is attention else 1]

    seen: list[Tensor] = []
    trace_callable(lambda *given: seen.append(step(*given)), arguments())
    torch.testing.assert_close(seen[0], step(*arguments()), rtol=0, atol=0)
