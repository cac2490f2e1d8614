"""Trace one call of a module or function into a profile in memory: for tests and benchmarks.

In: something to call and its arguments. Out: a ``Profile`` with operators, values, sketches, stacks and
keys; nothing was measured, so there are no readings and the meter counts.
"""

import platform
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import torch
from torch import nn

from magneton.profile.model import Profile
from magneton.profile.origin import MeterInfo, Origin
from magneton.profile.sketches import stack_sketches
from magneton.quantity import Provenance
from magneton.record.torch.dataflow import Recorder
from magneton.record.torch.opening import Openings
from magneton.record.torch.patches import patch_sketch
from magneton.record.torch.recording import Trace
from magneton.record.torch.rounding import Rounder, drifts
from magneton.record.torch.sketching import SketchOf, sketch_tensor
from magneton.record.torch.sources import INPUT_ROOT
from magneton.workload import CALL, Workload


def trace_callable(
    target: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    sketch: SketchOf = sketch_tensor,
    with_drift: bool = False,
) -> Profile:
    """Run ``target(*args, **kwargs)`` under the dataflow pass, in the grad mode of the caller.

    Once; ``with_drift`` copies of them run before, rounded otherwise, as a recording does.
    """
    keywords = dict(kwargs or {})
    openings = Openings()
    noisy = _rounded(openings, *deepcopy((target, args, keywords))) if with_drift else None
    # A sketcher of the caller's own wants to see each tensor whole.
    patch = patch_sketch if sketch is sketch_tensor else None
    recorder = Recorder(sketch=sketch, patch=patch, openings=openings)
    with recorder.phase(CALL, _roots(target, args, keywords)) as recording:
        target(*args, **keywords)
    trace = recording.trace
    drift = {} if noisy is None else drifts(trace, noisy)
    return Profile(
        origin=_origin(getattr(target, "__name__", type(target).__name__)),
        operators=trace.operators,
        values=tuple(replace(value, drift=drift.get(value.value_id)) for value in trace.values),
        sketches=stack_sketches([sketch for _, sketch in trace.sketches]),
        stacks=trace.stacks,
        keys=trace.keys,
    )


def _rounded(
    openings: Openings, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Trace:
    with Rounder(openings).phase(CALL, _roots(target, args, kwargs)) as recording:
        target(*args, **kwargs)
    return recording.trace


def _roots(target: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    inputs = {f"args.{place}": value for place, value in enumerate(args)} | dict(kwargs)
    modules = {"": target} if isinstance(target, nn.Module) else {}
    return {INPUT_ROOT: inputs, **modules}


def _origin(name: str) -> Origin:
    meter = MeterInfo(name="counted:operators", unit="operators", provenance=Provenance.COUNTED)
    return Origin(
        magneton_version="0",
        system=name,
        options={},
        versions={"python": platform.python_version(), "torch": torch.__version__},
        model=name,
        config_hash="",
        weights_hash="",
        workload=Workload(phases=(CALL,)),
        device=platform.processor() or platform.machine(),
        device_kind="cpu",
        driver="",
        meter=meter,
        threads=torch.get_num_threads(),
        grad_mode="grad" if torch.is_grad_enabled() else "no_grad",
        mode="eager",
        dataflow_mode="eager",
        flags={},
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        session="",
    )
