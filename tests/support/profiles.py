"""Small valid profiles: plain builders, and strategies that draw any profile the model allows.

``small_profile()`` is a chain: an input flows through a few operators, each with its own key, to one
declared output. Change it with ``dataclasses.replace``. Every builder takes the fields of what it
builds as keywords.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from magneton.profile.device import Arithmetic, ArithmeticUnit, Coefficient, DeviceModel
from magneton.profile.model import (
    BlockReading,
    Conditions,
    Doubt,
    Effect,
    Frame,
    IdlePower,
    Kernel,
    KeyId,
    Operator,
    OpId,
    Pass,
    PowerSample,
    Profile,
    ReplayKey,
    ReplayReading,
    Role,
    ScopeTime,
    Stack,
    StackId,
    Value,
    ValueId,
)
from magneton.profile.origin import MeterInfo, Origin
from magneton.profile.sketches import FREQUENCIES, Sketch, Sketches, stack_sketches
from magneton.quantity import Provenance
from magneton.record.sketching import sketch_array
from magneton.workload import PREFILL, Workload

NASTY_TEXTS = (
    "[bold red]markup[/bold red]",
    "\x1b[31mred\x1b[0m\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\",
    "<script>alert(1)</script>",
    "::error file=app.py::workflow command",
    "line\nbreak\r\n\ttab\0nul",
    "\u202eright to left\u2028separator",
    "ünïcödé 模型 🜲",
    '{"json": ["in", 1]}',
    "",
)


def an_origin(**changes: Any) -> Origin:
    known: dict[str, Any] = {
        "magneton_version": "0.1.0",
        "system": "torch",
        "options": {},
        "versions": {"python": "3.11.7", "torch": "2.13.0+cpu"},
        "model": "llama-tiny",
        "config_hash": "c0ffee",
        "weights_hash": "f00d",
        "workload": Workload(phases=(PREFILL,)),
        "device": "a processor",
        "device_kind": "cpu",
        "driver": "",
        "meter": MeterInfo(name="modelled", unit="J", provenance=Provenance.MODELLED),
        "threads": 1,
        "grad_mode": "inference",
        "mode": "eager",
        "dataflow_mode": "eager",
        "flags": {},
        "recorded_at": "2026-01-02T03:04:05Z",
        "session": "",
    }
    return Origin(**(known | changes))


def an_operator(op_id: int, **changes: Any) -> Operator:
    known: dict[str, Any] = {
        "op_id": OpId(op_id),
        "phase": PREFILL,
        "name": "aten.relu.default",
        "inputs": (),
        "outputs": (),
        "mutated": (),
        "attributes": "{}",
        "module_path": "model",
        "stack_id": StackId(0),
        "effect": "compute",
        "flops": 8,
        "bytes_moved": 64,
        "key_id": KeyId(0),
        "duration_s": 1e-3,
    }
    return Operator(**(known | changes))


def a_value(value_id: int, **changes: Any) -> Value:
    known: dict[str, Any] = {
        "value_id": ValueId(value_id),
        "role": "activation",
        "name": "",
        "shape": (2, 4),
        "dtype": "float32",
        "producer": None,
        "storage_id": value_id,
        "version": 0,
    }
    return Value(**(known | changes))


def a_coefficient(low: float, value: float, high: float, *, source: str = "a test") -> Coefficient:
    return Coefficient(value=value, low=low, high=high, source=source)


def small_profile(*, operators: int = 3, energy_j: float | None = 1.0, **changes: Any) -> Profile:
    """A chain of ``operators`` from one input to the output ``prefill.logits``; 3 blocks each pass.

    A clean block spends ``energy_j`` in one second; each operator gets an equal share of four fifths
    of it in replay. ``changes`` replace whole fields of the profile.
    """
    passes: tuple[tuple[Pass, float], ...] = (("clean", 0.0), ("timeline", 1.0))
    share = 0.8 / max(operators, 1)
    arrays = [
        np.random.default_rng(k).standard_normal((2, 4)).astype(np.float32) for k in range(operators + 1)
    ]
    known: dict[str, Any] = {
        "origin": an_origin(),
        "operators": tuple(
            an_operator(
                k,
                inputs=(ValueId(k),),
                outputs=(ValueId(k + 1),),
                stack_id=StackId(0),
                key_id=KeyId(k),
                duration_s=share,
            )
            for k in range(operators)
        ),
        "values": (
            a_value(0, role="input", name="x"),
            *(a_value(k + 1, producer=OpId(k)) for k in range(operators)),
        ),
        "sketches": stack_sketches([sketch_array(array) for array in arrays]),
        "stacks": (Stack(frames=(Frame(file="model.py", line=7, function="forward", code="x = relu(x)"),)),),
        "keys": tuple(ReplayKey(key_id=KeyId(k), skipped=None) for k in range(operators)),
        "kernels": tuple(
            Kernel(
                phase=PREFILL, op_id=OpId(k), name="relu", device="cpu", start_s=k * share, duration_s=share
            )
            for k in range(operators)
        ),
        "blocks": tuple(
            BlockReading(
                pass_=which,
                phase=PREFILL,
                round=r,
                start_s=2.0 * r + offset,
                steps=1,
                duration_s=1.0,
                energy_j=energy_j,
            )
            for r in range(3)
            for which, offset in passes
        ),
        "replays": tuple(
            ReplayReading(
                key_id=KeyId(k),
                round=r,
                executions=10,
                duration_s=share,
                energy_j=None if energy_j is None else energy_j * share,
            )
            for r in range(3)
            for k in range(operators)
        ),
        "scopes": (ScopeTime(phase=PREFILL, scope="sampling", duration_s=1.0, samples=400),),
        "outputs": {"prefill.logits": arrays[-1]},
    }
    return Profile(**(known | changes))


def same_profile(one: Profile, other: Profile) -> bool:
    """Equality to the last bit; ``Profile`` itself cannot compare its arrays."""
    plain = (
        getattr(one, f.name) == getattr(other, f.name)
        for f in fields(Profile)
        if f.name not in {"sketches", "outputs"}
    )
    return (
        all(plain)
        and same_sketches(one.sketches, other.sketches)
        and one.outputs.keys() == other.outputs.keys()
        and all(_same_bits(array, other.outputs[name]) for name, array in one.outputs.items())
    )


def same_sketches(one: Sketches, other: Sketches) -> bool:
    return all(_same_bits(getattr(one, f.name), getattr(other, f.name)) for f in fields(Sketches))


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


# --- strategies ---------------------------------------------------------------------------------------------

texts = st.sampled_from(NASTY_TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = texts.filter(bool)
counts = st.integers(0, 2**63 - 1)
small_counts = st.integers(0, 2**31 - 1)
amounts = st.floats(0, 1e12)
lengths_s = st.floats(0, 1e6, exclude_min=True)
moments_s = st.floats(-1e9, 1e9)
settings_of_strings = st.dictionaries(texts, texts, max_size=3)
reals = st.floats(allow_nan=False, allow_infinity=False)


def _choice(*values: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def _indices(size: int, *, max_size: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    if size == 0:
        return st.just(())
    return st.lists(st.integers(0, size - 1), max_size=max_size).map(tuple)


def _rows(one: st.SearchStrategy[Any], *, max_size: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(one, max_size=max_size).map(tuple)


workloads = st.builds(
    Workload,
    phases=st.lists(names, min_size=1, max_size=3, unique=True).map(tuple),
    batch=st.integers(1, 2**31 - 1),
    prompt_tokens=small_counts,
    decode_steps=small_counts,
    dtype=_choice("float32", "bfloat16", "float16"),
    seed=st.integers(-(2**63), 2**63 - 1),
)

coefficients = st.tuples(*[st.floats(1, 1e3)] * 3, texts).map(
    lambda drawn: a_coefficient(*sorted(drawn[:3]), source=drawn[3])
)
prices = st.tuples(coefficients, coefficients).map(lambda pair: sorted(pair, key=lambda one: one.value))
units = st.builds(
    ArithmeticUnit,
    kind=_choice("vector", "matrix"),
    arithmetic=_choice(*get_args(Arithmetic)),
    flop_per_s=coefficients,
    j_per_flop=coefficients,
)


@st.composite
def devices(draw: st.DrawFn) -> DeviceModel:
    """Figures of no real device, which still agree with each other."""
    near, far = draw(prices)
    own = draw(st.lists(units, max_size=3, unique_by=ArithmeticUnit.name))
    vector = replace(draw(units), kind="vector", arithmetic="float32")
    return DeviceModel(
        name=draw(texts),
        constant_power_w=draw(coefficients),
        tdp_w=a_coefficient(1e3, 2e3, 4e3),
        shortest_kernel_s=draw(coefficients),
        memory_bytes_per_s=draw(coefficients),
        memory_j_per_byte=far,
        cache_bytes=draw(coefficients),
        cache_j_per_byte=near,
        units=(vector, *(unit for unit in own if unit.name() != vector.name())),
    )


def _measuring(**known: Any) -> st.SearchStrategy[MeterInfo]:
    return st.builds(
        MeterInfo,
        name=texts,
        scale_low=st.floats(0, 1, exclude_min=True),
        scale_high=st.floats(1, 1e3),
        source=texts,
        window_error=st.floats(0, 1),
        **known,
    )


meters = _measuring(
    unit=_choice("J", "FLOP", "B", "operators"), provenance=st.sampled_from(Provenance)
) | _measuring(unit=st.just("J"), provenance=st.just(Provenance.MODELLED), device=devices())

origins = st.builds(
    Origin,
    magneton_version=texts,
    system=texts,
    options=settings_of_strings,
    versions=settings_of_strings,
    model=texts,
    config_hash=texts,
    weights_hash=texts,
    workload=workloads,
    device=texts,
    device_kind=_choice("cpu", "cuda"),
    driver=texts,
    meter=meters,
    threads=st.integers(1, 2**31 - 1),
    grad_mode=_choice("inference", "no_grad", "grad"),
    mode=_choice("eager", "compiled", "graph"),
    dataflow_mode=_choice("eager", "compiled", "graph"),
    flags=settings_of_strings,
    recorded_at=texts,
    session=texts,
    host_meter=st.none() | meters,
    replay_cache=_choice("as met", "warm", "cold"),
)

stacks = st.builds(
    Stack,
    frames=_rows(
        st.builds(Frame, file=texts, line=small_counts, function=texts, code=texts),
    ),
)

sketch_rows = st.builds(
    Sketch,
    count=counts,
    pos_inf=counts,
    neg_inf=counts,
    nan=counts,
    huge=counts,
    distinct=small_counts,
    rms=st.floats(0, 1e30),
    first=st.integers(-1000, 1000),
    cos_sum=st.tuples(*[reals] * FREQUENCIES),
    sin_sum=st.tuples(*[reals] * FREQUENCIES),
    projection=st.tuples(reals, reals),
)

output_arrays = stn.arrays(
    dtype=st.sampled_from(
        [np.dtype(d) for d in ("bool", "int8", "int64", "float16", "float32", "complex64")]
    ),
    shape=stn.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """The parts that the rest of a drawn profile refers to."""

    phases: Sequence[str]
    operators: int
    stacks: int
    keys: int


@st.composite
def _dataflow(draw: st.DrawFn, parts: _Drawn) -> tuple[tuple[Operator, ...], tuple[Value, ...]]:
    """Operators in order; each may read what came before and makes new values or hands inputs on."""
    roles: tuple[Role, ...] = ("input", "parameter", "buffer", "constant", "activation")
    effects: tuple[Effect, ...] = ("compute", "view", "alloc", "sync", "random")
    producers: list[int | None] = [None] * draw(st.integers(0, 3))
    operators: list[Operator] = []
    for op_id in range(parts.operators):
        inputs = draw(_indices(len(producers)))
        made = draw(st.integers(0, 2))
        outputs = tuple(range(len(producers), len(producers) + made)) + draw(_subset(inputs))
        producers += [op_id] * made
        operators.append(
            an_operator(
                op_id,
                phase=draw(st.sampled_from(parts.phases)),
                name=draw(texts),
                inputs=inputs,
                outputs=outputs,
                mutated=draw(_subset(outputs)),
                attributes=draw(texts),
                module_path=draw(texts),
                stack_id=draw(st.integers(0, parts.stacks - 1)),
                effect=draw(st.sampled_from(effects)),
                flops=draw(counts),
                bytes_moved=draw(counts),
                key_id=draw(st.integers(0, parts.keys - 1)),
                duration_s=draw(st.none() | lengths_s),
                scope=draw(texts),
            )
        )
    values = tuple(
        a_value(
            value_id,
            role=draw(st.sampled_from(roles)),
            name=draw(texts),
            shape=tuple(draw(st.lists(st.integers(0, 1000), max_size=4))),
            dtype=draw(texts),
            producer=producer,
            storage_id=draw(st.integers(-(2**63), 2**63 - 1)),
            drift=draw(st.none() | st.floats(0, 1e300)),
            version=draw(counts),
        )
        for value_id, producer in enumerate(producers)
    )
    return tuple(operators), values


def _subset(items: tuple[Any, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    if not items:
        return st.just(())
    return st.lists(st.sampled_from(items), max_size=2, unique=True).map(tuple)


@st.composite
def _readings(draw: st.DrawFn, parts: _Drawn) -> dict[str, tuple[Any, ...]]:
    phase = st.sampled_from(parts.phases)
    energy = st.none() | amounts
    op_id = st.none() if parts.operators == 0 else st.none() | st.integers(0, parts.operators - 1)
    kernels = st.builds(
        Kernel,
        phase=phase,
        op_id=op_id,
        name=texts,
        device=texts,
        start_s=moments_s,
        duration_s=st.floats(0, 1e6),
    )
    conditions = st.builds(
        Conditions,
        phase=phase,
        round=small_counts,
        moment=_choice("before", "after"),
        time_s=moments_s,
        temperature_c=st.none() | st.floats(-200, 200),
        clock_hz=st.none() | amounts,
        throttle=texts,
        foreign=st.none() | small_counts,
    )
    idle = st.builds(
        IdlePower,
        moment=_choice("before", "after"),
        time_s=moments_s,
        duration_s=lengths_s,
        power_w=energy,
        host_power_w=energy,
    )
    samples = st.builds(PowerSample, phase=phase, round=small_counts, time_s=moments_s, power_w=amounts)
    blocks = st.builds(
        BlockReading,
        pass_=_choice("clean", "timeline"),
        phase=phase,
        round=small_counts,
        start_s=moments_s,
        steps=st.integers(1, 2**31 - 1),
        duration_s=lengths_s,
        host_energy_j=energy,
        agreement=energy,
        energy_j=energy,
        gap=texts,
    )
    replays = st.builds(
        ReplayReading,
        key_id=st.integers(0, parts.keys - 1),
        round=small_counts,
        executions=st.integers(1, 2**63 - 1),
        duration_s=lengths_s,
        busy_share=energy,
        energy_j=energy,
        gap=texts,
    )
    scopes = st.builds(ScopeTime, phase=phase, scope=texts, duration_s=st.floats(0, 1e6), samples=counts)
    return {
        "kernels": draw(_rows(kernels)),
        "samples": draw(_rows(samples)),
        "blocks": draw(_rows(blocks)),
        "replays": draw(_rows(replays)) if parts.keys else (),
        "conditions": draw(_rows(conditions)),
        "idle": draw(_rows(idle)),
        "scopes": draw(st.lists(scopes, max_size=3, unique_by=lambda row: (row.phase, row.scope)).map(tuple)),
    }


@st.composite
def profiles(draw: st.DrawFn, *, max_operators: int = 4) -> Profile:
    """Any valid profile: unlikely, but allowed by the model."""
    origin = draw(origins)
    operators = draw(st.integers(0, max_operators))
    known_stacks = draw(st.lists(stacks, min_size=min(operators, 1), max_size=3).map(tuple))
    keys = draw(st.lists(st.none() | texts, min_size=min(operators, 1), max_size=3))
    parts = _Drawn(
        phases=origin.workload.phases, operators=operators, stacks=len(known_stacks), keys=len(keys)
    )
    rows, values = draw(_dataflow(parts))
    sketched = draw(st.lists(st.none() | sketch_rows, min_size=len(values), max_size=len(values)))
    return Profile(
        origin=origin,
        operators=rows,
        values=values,
        sketches=stack_sketches(sketched),
        stacks=known_stacks,
        keys=tuple(ReplayKey(key_id=KeyId(k), skipped=why) for k, why in enumerate(keys)),
        outputs=draw(st.dictionaries(names, output_arrays, max_size=2)),
        doubts=draw(_rows(st.builds(Doubt, kind=texts, text=texts))),
        **draw(_readings(parts)),
    )
