"""What must hold inside a profile, whoever made it.

Called when a file has been read and when a recording has been put together. Ids are row numbers; every
reference exists; operators read only what was there before them; figures are figures. What follows may
index and divide without looking again.

Each ``_..._problem`` says what is wrong with one row, to be read after the row's name, or None.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TypeVar, get_args

import numpy as np

from magneton.errors import InvalidProfile
from magneton.profile.arrays import MAX_OUTPUTS
from magneton.profile.damage import quoted
from magneton.profile.model import (
    BlockReading,
    Conditions,
    Effect,
    IdlePower,
    Kernel,
    Moment,
    Operator,
    Pass,
    PowerSample,
    Profile,
    ReplayReading,
    Role,
    ScopeTime,
    Stack,
    Value,
)
from magneton.profile.origin import MeterInfo, Origin
from magneton.profile.sketches import FREQUENCIES, Sketches

RowT = TypeVar("RowT")

_INT64_END = 2**63
_MAX_DIMENSIONS = 64
_MOST = 1e30  # of any figure: sums over the largest profile stay numbers
_ROLES, _EFFECTS, _PASSES, _MOMENTS = (get_args(kind) for kind in (Role, Effect, Pass, Moment))
_ABSOLUTE_ZERO_C = -273.15
_SKETCH_TYPES: Mapping[str, tuple[tuple[int, ...], str]] = {  # shape after the first axis, dtype
    "known": ((), "bool"),
    **dict.fromkeys(("count", "pos_inf", "neg_inf", "nan", "huge"), ((), "int64")),
    "distinct": ((), "int32"),
    "rms": ((), "float64"),
    "first": ((), "int32"),
    "cos_sum": ((FREQUENCIES,), "float64"),
    "sin_sum": ((FREQUENCIES,), "float64"),
    "projection": ((2,), "float64"),
}
_SIGNED_SKETCHES = frozenset({"known", "first", "cos_sum", "sin_sum", "projection"})


def check(profile: Profile) -> None:
    """Raise ``InvalidProfile`` naming the first thing that does not hold."""
    phases = frozenset(profile.origin.workload.phases)
    _refuse("the origin", _origin_problem(profile.origin))
    _check_rows("value", profile.values, lambda k, value: _id_problem(k, value.value_id))
    _check_rows("operator", profile.operators, lambda k, op: _id_problem(k, op.op_id))
    _check_rows("key", profile.keys, lambda k, key: _id_problem(k, key.key_id))
    operators, given = len(profile.operators), _given(profile)
    _check_rows("value", profile.values, partial(_value_problem, operators=operators, given=given))
    _check_rows("operator", profile.operators, partial(_operator_problem, profile=profile, phases=phases))
    _check_rows("stack", profile.stacks, _stack_problem)
    _refuse("the table of sketches", _sketches_problem(profile.sketches, len(profile.values)))
    _check_rows("kernel", profile.kernels, partial(_kernel_problem, profile=profile, phases=phases))
    _check_rows("sample", profile.samples, partial(_sample_problem, phases=phases))
    _check_rows("block", profile.blocks, partial(_block_problem, phases=phases))
    _check_rows("replay", profile.replays, partial(_replay_problem, keys=len(profile.keys)))
    _check_rows("scope", profile.scopes, partial(_scope_problem, phases=phases))
    _refuse("the survey", _survey_problem(profile.scopes))
    _check_rows("condition", profile.conditions, partial(_conditions_problem, phases=phases))
    _check_rows("idle reading", profile.idle, _idle_problem)
    _refuse("the recording", _outputs_problem(profile.outputs))


def _check_rows(noun: str, rows: Sequence[RowT], problem_of: Callable[[int, RowT], str | None]) -> None:
    for k, row in enumerate(rows):
        problem = problem_of(k, row)
        if problem is not None:
            _refuse(f"{noun} {k}", problem)


def _refuse(what: str, problem: str | None) -> None:
    if problem is not None:
        raise InvalidProfile(
            f"{what} {problem}",
            hint="the recording contradicts itself: record it again; if that does not help, report it",
        )


def _origin_problem(origin: Origin) -> str | None:
    workload = origin.workload
    if not workload.phases or not all(workload.phases) or len(set(workload.phases)) < len(workload.phases):
        return f"has the phases {quoted(', '.join(workload.phases))}; each needs a name of its own"
    if not -_INT64_END <= workload.seed < _INT64_END:
        return f"has the seed {workload.seed}"
    return (
        _meter_problem("meter", origin.meter)
        or (None if origin.host_meter is None else _meter_problem("host_meter", origin.host_meter))
        or _positive_problem("batch", workload.batch)
        or _count_problem("prompt_tokens", workload.prompt_tokens)
        or _count_problem("decode_steps", workload.decode_steps)
        or _positive_problem("threads", origin.threads)
    )


def _meter_problem(name: str, meter: MeterInfo) -> str | None:
    if not 0 < meter.scale_low <= meter.scale_high < math.inf:
        return f"has a {name} whose scale lies between {meter.scale_low} and {meter.scale_high}"
    return _amount_problem(f"window_error of the {name}", meter.window_error)


def _given(profile: Profile) -> frozenset[int]:
    """The values that their producer has among its outputs."""
    producers = {value.value_id: value.producer for value in profile.values}
    return frozenset(
        value_id for op in profile.operators for value_id in op.outputs if producers.get(value_id) == op.op_id
    )


def _value_problem(k: int, value: Value, *, operators: int, given: frozenset[int]) -> str | None:
    producer = value.producer
    if value.role not in _ROLES:
        return f"has the role {quoted(value.role)}"
    if not -_INT64_END <= value.storage_id < _INT64_END:
        return f"has the storage_id {value.storage_id}"
    if producer is not None and not 0 <= producer < operators:
        return f"comes from operator {producer} of {operators}"
    if producer is not None and k not in given:
        return f"comes from operator {producer}, which has no such output"
    if value.drift is not None and not 0 <= value.drift < math.inf:
        return f"has the drift {value.drift}"
    return _shape_problem(value.shape) or _count_problem("version", value.version)


def _shape_problem(shape: tuple[int, ...]) -> str | None:
    if len(shape) > _MAX_DIMENSIONS:
        return f"has {len(shape)} dimensions; at most {_MAX_DIMENSIONS} are allowed"
    if any(size < 0 for size in shape) or math.prod(size for size in shape if size) >= _INT64_END:
        return f"has the shape {quoted(str(shape))}"
    return None


def _operator_problem(_k: int, op: Operator, *, profile: Profile, phases: frozenset[str]) -> str | None:
    if op.effect not in _EFFECTS:
        return f"has the effect {quoted(op.effect)}"
    return (
        _phase_problem(op.phase, phases)
        or _reference_problem("stack", op.stack_id, len(profile.stacks))
        or _reference_problem("key", op.key_id, len(profile.keys))
        or _count_problem("flops", op.flops)
        or _count_problem("bytes_moved", op.bytes_moved)
        or (None if op.duration_s is None else _duration_problem(op.duration_s, may_be_nothing=True))
        or _operands_problem(op, profile.values)
    )


def _operands_problem(op: Operator, values: Sequence[Value]) -> str | None:
    """What an operator reads was there before it; what it gives is its own or one of its inputs handed on."""
    for value_id in (*op.inputs, *op.outputs, *op.mutated):
        if not 0 <= value_id < len(values):
            return f"refers to value {value_id} of {len(values)}"
    for value_id in op.inputs:
        producer = values[value_id].producer
        if producer is not None and producer >= op.op_id:
            return f"reads value {value_id}, which operator {producer} has yet to make"
    foreign = {value_id for value_id in op.outputs if values[value_id].producer != op.op_id}
    for value_id in sorted(foreign.difference(op.inputs)):
        return f"gives value {value_id}, which is neither its own nor one of its inputs"
    for value_id in sorted(set(op.mutated).difference(op.outputs)):
        return f"overwrites value {value_id}, which is none of its outputs"
    return None


def _stack_problem(_k: int, stack: Stack) -> str | None:
    return _first(_count_problem("line", frame.line) for frame in stack.frames)


def _sketches_problem(sketches: Sketches, values: int) -> str | None:
    return _first(
        _sketch_column_problem(field.name, getattr(sketches, field.name), values)
        for field in fields(sketches)
    )


def _sketch_column_problem(name: str, array: np.ndarray, values: int) -> str | None:
    width, dtype = _SKETCH_TYPES[name]
    if array.shape != (values, *width) or array.dtype != dtype:
        return f"has {name} as {array.dtype}{list(array.shape)}, not {dtype}{[values, *width]}"
    if not np.isfinite(array).all():
        return f"has a {name} that is not finite"
    if name not in _SIGNED_SKETCHES and (array < 0).any():
        return f"has a negative {name}"
    return None


def _kernel_problem(_k: int, kernel: Kernel, *, profile: Profile, phases: frozenset[str]) -> str | None:
    if problem := _duration_problem(kernel.duration_s, may_be_nothing=True):
        return problem
    return (
        _phase_problem(kernel.phase, phases)
        or (
            None
            if kernel.op_id is None
            else _reference_problem("operator", kernel.op_id, len(profile.operators))
        )
        or _moment_problem("start_s", kernel.start_s)
    )


def _sample_problem(_k: int, sample: PowerSample, *, phases: frozenset[str]) -> str | None:
    if not 0 <= sample.power_w < math.inf:
        return f"has the power_w {sample.power_w}"
    return (
        _phase_problem(sample.phase, phases)
        or _count_problem("round", sample.round)
        or _moment_problem("time_s", sample.time_s)
    )


def _block_problem(_k: int, block: BlockReading, *, phases: frozenset[str]) -> str | None:
    if block.pass_ not in _PASSES:
        return f"belongs to the pass {quoted(block.pass_)}"
    return (
        _phase_problem(block.phase, phases)
        or _count_problem("round", block.round)
        or _moment_problem("start_s", block.start_s)
        or _positive_problem("steps", block.steps)
        or _duration_problem(block.duration_s)
        or _energy_problem(block.energy_j)
        or _amount_problem("host_energy_j", block.host_energy_j)
        or _amount_problem("agreement", block.agreement)
    )


def _replay_problem(_k: int, replay: ReplayReading, *, keys: int) -> str | None:
    return (
        _reference_problem("key", replay.key_id, keys)
        or _count_problem("round", replay.round)
        or _positive_problem("executions", replay.executions)
        or _duration_problem(replay.duration_s, may_be_nothing=True)
        or _energy_problem(replay.energy_j)
        or _amount_problem("busy_share", replay.busy_share)
    )


def _scope_problem(_k: int, scope: ScopeTime, *, phases: frozenset[str]) -> str | None:
    return (
        _phase_problem(scope.phase, phases)
        or _duration_problem(scope.duration_s, may_be_nothing=True)
        or _count_problem("samples", scope.samples)
    )


def _survey_problem(scopes: Sequence[ScopeTime]) -> str | None:
    """One row holds all the time of a scope: shares are taken of their sum."""
    seen = set[tuple[str, str]]()
    for scope in scopes:
        if (scope.phase, scope.scope) in seen:
            return f"has the scope {quoted(scope.scope)} of {quoted(scope.phase)} twice"
        seen.add((scope.phase, scope.scope))
    return None


def _conditions_problem(_k: int, conditions: Conditions, *, phases: frozenset[str]) -> str | None:
    temperature_c = conditions.temperature_c
    if temperature_c is not None and not _ABSOLUTE_ZERO_C < temperature_c < math.inf:
        return f"has the temperature_c {temperature_c}"
    return (
        _phase_problem(conditions.phase, phases)
        or _count_problem("round", conditions.round)
        or _moment_of_problem(conditions.moment)
        or _moment_problem("time_s", conditions.time_s)
        or _amount_problem("clock_hz", conditions.clock_hz)
        or _count_problem("foreign", conditions.foreign or 0)
    )


def _idle_problem(_k: int, idle: IdlePower) -> str | None:
    return (
        _moment_of_problem(idle.moment)
        or _moment_problem("time_s", idle.time_s)
        or _duration_problem(idle.duration_s)
        or _amount_problem("power_w", idle.power_w)
        or _amount_problem("host_power_w", idle.host_power_w)
    )


def _moment_of_problem(moment: str) -> str | None:
    return None if moment in _MOMENTS else f"has the moment {quoted(moment)}"


def _outputs_problem(outputs: Mapping[str, np.ndarray]) -> str | None:
    if len(outputs) > MAX_OUTPUTS:
        return f"declares {len(outputs)} outputs; at most {MAX_OUTPUTS} are allowed"
    if "" in outputs:
        return "declares an output without a name"
    return None


def _first(problems: Iterable[str | None]) -> str | None:
    return next((problem for problem in problems if problem is not None), None)


def _id_problem(k: int, found: int) -> str | None:
    return None if found == k else f"has the id {found}; ids are row numbers"


def _reference_problem(noun: str, index: int, count: int) -> str | None:
    return None if 0 <= index < count else f"refers to {noun} {index} of {count}"


def _phase_problem(phase: str, phases: frozenset[str]) -> str | None:
    return (
        None if phase in phases else f"belongs to the phase {quoted(phase)}, which the workload does not have"
    )


def _count_problem(name: str, count: int) -> str | None:
    return None if 0 <= count < _INT64_END else f"has the {name} {count}"


def _positive_problem(name: str, count: int) -> str | None:
    return None if 0 < count < _INT64_END else f"has the {name} {count}"


def _moment_problem(name: str, moment_s: float) -> str | None:
    return None if math.isfinite(moment_s) else f"has the {name} {moment_s}"


def _duration_problem(duration_s: float, *, may_be_nothing: bool = False) -> str | None:
    """A block takes time; an operator may launch nothing, or be no dearer than calling it."""
    possible = 0 < duration_s <= _MOST or (may_be_nothing and duration_s == 0)
    return None if possible else f"has the duration_s {duration_s}"


def _energy_problem(energy_j: float | None) -> str | None:
    return _amount_problem("energy_j", energy_j)


def _amount_problem(name: str, amount: float | None) -> str | None:
    return None if amount is None or 0 <= amount <= _MOST else f"has the {name} {amount}"
