from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor, nn

from magneton.profile.model import Value, ValueId
from magneton.record.torch.dataflow import Recorder
from magneton.record.torch.recording import Trace
from magneton.record.torch.rounding import Rounder, RoundingMode, drifts
from magneton.workload import CALL

LOWEST = torch.finfo(torch.float32).min


def traced(step: Callable[[], object], *, roots: Mapping[str, object] | None = None) -> tuple[Trace, Trace]:
    """``step`` as it is and under noise."""
    found: list[Trace] = []
    for recorder in (Recorder(), Rounder()):
        with torch.no_grad(), recorder.phase(CALL, dict(roots or {})) as recording:
            step()
        found.append(recording.trace)
    return found[0], found[1]


def drift_of(step: Callable[[], object]) -> tuple[tuple[Value, ...], Mapping[ValueId, float]]:
    trace, noisy = traced(step)
    return trace.values, drifts(trace, noisy)


def deep(dtype: torch.dtype) -> Callable[[], Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(4))).to(dtype)
    x = torch.randn(16, 32).to(dtype)
    return lambda: model(x)


def test_computed_values_have_a_drift_and_what_was_there_before_has_none():
    values, drift = drift_of(deep(torch.float32))
    computed = {value.value_id for value in values if value.producer is not None}
    assert drift.keys() <= computed  # views of what was there before have none either
    assert len(drift) > len(computed) / 2
    assert 0 < max(drift.values()) < 1e-5


def test_drift_grows_as_precision_falls():
    single, half, brain = (
        max(drift_of(deep(dtype))[1].values()) for dtype in (torch.float32, torch.float16, torch.bfloat16)
    )
    assert single * 100 < half < brain


def test_it_is_the_same_every_time():
    step = deep(torch.bfloat16)
    assert drift_of(step)[1] == drift_of(step)[1]


def test_nothing_that_existed_before_changes_and_no_number_is_drawn():
    torch.manual_seed(3)
    layer, cache, x = nn.Linear(8, 8), torch.zeros(4, 8), torch.randn(4, 8)
    before = layer.weight.clone()
    state = torch.get_rng_state()
    with torch.no_grad(), RoundingMode():
        cache.copy_(torch.ones(4, 8)).mul_(1.0)  # memory that was there: written by the step, not by noise
        layer(x)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(layer.weight, before)
    with torch.no_grad(), RoundingMode():
        cache.add_(1.0)
    assert (cache - 2.0).abs().max() < 1e-5


def test_a_mask_of_the_lowest_number_stays_finite():
    with RoundingMode():
        mask = torch.full((64, 64), LOWEST) * 1.0
    assert bool(mask.isfinite().all())
    values, drift = drift_of(lambda: torch.randn(64, 64) + torch.full((64, 64), LOWEST).triu(1))
    assert set(drift) == {value.value_id for value in values if value.producer is not None}


def test_results_written_into_memory_made_by_the_step_are_perturbed():
    x = torch.randn(64, 64)
    with RoundingMode():
        out = torch.empty(64, 64)
        torch.mm(x, x, out=out)
    assert not torch.equal(out, x @ x)
    torch.testing.assert_close(out, x @ x)


@pytest.mark.parametrize("tied", [True, False])
def test_what_follows_a_decision_that_noise_turned_is_not_compared(tied: bool):
    logits = torch.ones(64, 8) if tied else torch.eye(8).repeat(8, 1)
    table = torch.randn(8, 16)

    def step() -> Tensor:
        token = (logits * 1.0).argmax(-1)
        return table[token] * 2.0

    values, drift = drift_of(step)
    last = max(value.value_id for value in values)
    assert (last in drift) is not tied


def test_runs_that_do_different_operators_are_compared_as_far_as_they_agree():
    x = torch.randn(8, 8)
    runs = iter([torch.relu, torch.tanh])
    values, drift = drift_of(lambda: next(runs)(x * 2.0))
    assert len(drift) == 1
    assert len([value for value in values if value.producer is not None]) == 2


def test_under_noise_only_what_operators_compute_is_sketched():
    """Parameters are what they are without noise, and a large model's take seconds to sketch."""
    model, x = torch.nn.Linear(4, 4, bias=False), torch.rand(2, 4)
    with torch.no_grad(), Rounder().phase(CALL, {"": model}) as recording:
        torch.relu(model(x))
    known = {value for value, sketch in recording.trace.sketches if sketch is not None}
    computed = {v for op in recording.trace.operators if op.effect == "compute" for v in op.outputs}
    assert known == computed
