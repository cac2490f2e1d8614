"""Small rows of every kind that a journal takes."""

from magneton.profile.model import (
    BlockReading,
    Doubt,
    Frame,
    Kernel,
    KeyId,
    Operator,
    OpId,
    PowerSample,
    ReplayKey,
    ReplayReading,
    ScopeTime,
    Stack,
    StackId,
    Value,
    ValueId,
)
from magneton.profile.origin import MeterInfo, Origin
from magneton.quantity import Provenance
from magneton.record.journal import Row
from magneton.workload import Workload


def origin(**changes: object) -> Origin:
    fields: dict[str, object] = {
        "magneton_version": "0",
        "system": "toy",
        "options": {"busy": "no"},
        "versions": {"python": "3.11"},
        "model": "toy",
        "config_hash": "",
        "weights_hash": "",
        "workload": Workload(phases=("call",)),
        "device": "a processor",
        "device_kind": "cpu",
        "driver": "",
        "meter": MeterInfo(name="clock", unit="J", provenance=Provenance.MODELLED, scale_high=float("inf")),
        "threads": 1,
        "grad_mode": "no_grad",
        "mode": "eager",
        "dataflow_mode": "eager",
        "flags": {},
        "recorded_at": "2000-01-01T00:00:00+00:00",
        "session": "",
    }
    return Origin(**(fields | changes))  # pyright: ignore[reportArgumentType] - fields by name


def operator(number: int, *, value: int = 0) -> Operator:
    return Operator(
        op_id=OpId(number),
        phase="call",
        name="toy.add\ud800",  # a lone surrogate, as odd file names give
        inputs=(),
        outputs=(ValueId(value),),
        mutated=(),
        attributes="{}",
        module_path="",
        stack_id=StackId(0),
        effect="compute",
        flops=3,
        bytes_moved=24,
        key_id=KeyId(0),
        duration_s=None,
    )


def value(number: int, *, name: str = "") -> Value:
    return Value(
        value_id=ValueId(number),
        role="activation",
        name=name,
        shape=(3,),
        dtype="float64",
        producer=OpId(0),
        storage_id=0,
        version=0,
    )


def key(number: int, *, skipped: str | None = None) -> ReplayKey:
    return ReplayKey(key_id=KeyId(number), skipped=skipped)


STACK = Stack(frames=(Frame(file="toy.py", line=1, function="f", code="x = 1"),))
KERNEL = Kernel(phase="call", op_id=None, name="k", device="cpu", start_s=0.0, duration_s=1e-6)
SAMPLE = PowerSample(phase="call", round=0, time_s=0.5, power_w=float("inf"))
BLOCK = BlockReading(
    pass_="clean", phase="call", round=0, start_s=0.1, steps=2, duration_s=0.5, energy_j=None
)
REPLAY = ReplayReading(key_id=KeyId(0), round=1, executions=9, duration_s=1e-5, energy_j=2e-5)
SCOPE = ScopeTime(phase="call", scope="adding", duration_s=0.25, samples=7)
DOUBT = Doubt(kind="paused-side-busy", text="busy")

SINGLE_ROWS: tuple[Row, ...] = (STACK, KERNEL, SAMPLE, BLOCK, REPLAY, SCOPE, DOUBT)
