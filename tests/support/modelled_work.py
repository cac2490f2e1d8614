"""Profiles of a few operators with true counts, for the model of a device: products, additions, copies."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from profiles import a_value, an_operator, an_origin, small_profile

from magneton.match.model import Matching, Region, RegionGroup
from magneton.profile.device import DeviceModel
from magneton.profile.model import KeyId, Operator, OpId, Profile, ReplayKey, Value, ValueId
from magneton.profile.origin import MeterInfo
from magneton.profile.sketches import stack_sketches
from magneton.quantity import Provenance
from magneton.workload import PREFILL, Workload

SIZES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "int8": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An operator on operands of its own."""

    name: str
    read: tuple[tuple[int, ...], ...]
    made: tuple[int, ...]
    flops: int
    dtype: str = "float32"
    changes: Any = None  # fields of the operator

    def size_bytes(self) -> int:
        elements = sum(_elements(shape) for shape in (*self.read, self.made))
        return elements * SIZES[self.dtype]


def product(
    n: int, *, m: int = 0, k: int = 0, dtype: str = "bfloat16", name: str = "aten.mm.default"
) -> Call:
    """[m, k] times [k, n]; a square one where only ``n`` is given."""
    m, k = m or n, k or n
    return Call(name=name, read=((m, k), (k, n)), made=(m, n), flops=2 * m * n * k, dtype=dtype)


def addition(elements: int, *, dtype: str = "float32") -> Call:
    return Call(
        name="aten.add.Tensor", read=((elements,),) * 2, made=(elements,), flops=elements, dtype=dtype
    )


def copy(elements: int, *, dtype: str = "float32") -> Call:
    return Call(name="aten.clone.default", read=((elements,),), made=(elements,), flops=0, dtype=dtype)


def meter_of(device: DeviceModel, name: str = "h200") -> MeterInfo:
    return MeterInfo(name=f"modelled:{name}", unit="J", provenance=Provenance.MODELLED, device=device)


def profile_of(calls: Sequence[Call], device: DeviceModel | None = None, **origin: Any) -> Profile:
    """One after the other, on values of their own. All outputs are one, so that work is the same."""
    operators: list[Operator] = []
    values: list[Value] = []
    for op_id, call in enumerate(calls):
        first = len(values)
        shapes = (*call.read, call.made)
        producers = (*[None] * len(call.read), OpId(op_id))
        values += [
            a_value(first + k, shape=shape, dtype=call.dtype, producer=producer)
            for k, (shape, producer) in enumerate(zip(shapes, producers, strict=True))
        ]
        known: dict[str, Any] = {
            "name": call.name,
            "inputs": tuple(ValueId(first + k) for k in range(len(call.read))),
            "outputs": (ValueId(first + len(call.read)),),
            "flops": call.flops,
            "bytes_moved": call.size_bytes(),
            "key_id": KeyId(op_id),
            "duration_s": None,
        }
        operators.append(an_operator(op_id, **(known | (call.changes or {}))))
    meter = {} if device is None else {"meter": meter_of(device)}
    return replace(
        small_profile(),
        origin=an_origin(**({"workload": Workload(phases=(PREFILL,))} | meter | origin)),
        operators=tuple(operators),
        values=tuple(values),
        sketches=stack_sketches([None] * len(values)),
        keys=tuple(ReplayKey(key_id=KeyId(k), skipped=None) for k in range(len(calls))),
        kernels=(),
        blocks=(),
        replays=(),
        scopes=(),
    )


def in_one_region(baseline: Profile, candidate: Profile, split: int = 0) -> Matching:
    """The first ``split`` operators pair one by one, all others are one region."""
    parts = [((k,), (k,)) for k in range(split)]
    rest = tuple(tuple(range(split, len(side.operators))) for side in (baseline, candidate))
    regions = tuple(
        Region(
            phase=PREFILL,
            baseline=tuple(OpId(op) for op in one),
            candidate=tuple(OpId(op) for op in other),
            produces=(),
            consumes=(),
        )
        for one, other in (*parts, (rest[0], rest[1]))
    )
    return Matching(
        pairs=(),
        regions=regions,
        groups=tuple(RegionGroup(regions=(k,)) for k in range(len(regions))),
        only_baseline=(),
        only_candidate=(),
    )


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
