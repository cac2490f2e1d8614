"""``profile.json``: schema name and version, where the profile comes from, what else is in the file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from magneton.errors import InvalidProfile
from magneton.profile.damage import damaged, quoted
from magneton.profile.device import Arithmetic, ArithmeticUnit, Coefficient, DeviceModel, UnitKind
from magneton.profile.fields import Fields
from magneton.profile.model import Doubt
from magneton.profile.origin import Cache, MeterInfo, Origin
from magneton.profile.sketches import SKETCH_VERSION
from magneton.profile.texts import unicode_text
from magneton.quantity import Provenance
from magneton.workload import Workload

MEMBER = "profile.json"
MAX_BYTES = 4 * 1024 * 1024
SCHEMA = "magneton-profile"
# 2: values have a drift; 3: operators have a scope, and the survey of scopes is kept; 4: the host's energy,
# idle power, conditions, why a reading is missing, the model of a device
SCHEMA_VERSION = 4
KindT = TypeVar("KindT", MeterInfo, DeviceModel, Coefficient)

_COEFFICIENTS = (
    "constant_power_w",
    "tdp_w",
    "shortest_kernel_s",
    "memory_bytes_per_s",
    "memory_j_per_byte",
    "cache_bytes",
    "cache_j_per_byte",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    origin: Origin
    doubts: tuple[Doubt, ...]
    stack_count: int  # stacks without frames have no row in their table
    outputs: tuple[str, ...]  # the name of outputs/0.npy, outputs/1.npy, ...
    sizes: Mapping[str, int]  # uncompressed bytes of every other member
    version: int = SCHEMA_VERSION  # of the file's schema


def encode_header(header: Header) -> bytes:
    content = {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "sketch_version": SKETCH_VERSION,
        "origin": _origin_json(header.origin),
        "doubts": [{"kind": doubt.kind, "text": doubt.text} for doubt in header.doubts],
        "stack_count": header.stack_count,
        "outputs": list(header.outputs),
        "members": dict(header.sizes),
    }
    data = json.dumps(_unicode(content), ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)
    encoded = data.encode("utf-8")
    if len(encoded) > MAX_BYTES:
        raise InvalidProfile(
            f"{MEMBER} would take {len(encoded)} bytes; at most {MAX_BYTES} are allowed",
            hint="record with shorter options and fewer configuration flags",
        )
    return encoded


def decode_header(data: bytes) -> Header:
    """Unknown and missing fields are refused; a newer version is told apart first."""
    fields = Fields(MEMBER, _parse(data))
    version = _version(fields)
    header = Header(
        version=version,
        origin=_origin(fields.nested("origin"), version),
        doubts=tuple(_doubt(one) for one in fields.nested_list("doubts")),
        stack_count=fields.integer("stack_count", at_least=0),
        outputs=fields.texts("outputs"),
        sizes=fields.integers("members", at_least=0),
    )
    fields.close()
    return header


def _version(fields: Fields) -> int:
    """The schema version, if this magneton reads it and the sketches."""
    if fields.text("schema") != SCHEMA:
        raise damaged(f"{MEMBER} is not of schema {SCHEMA}")
    found = {name: fields.integer(name, at_least=1) for name in ("version", "sketch_version")}
    for name, known in (("version", SCHEMA_VERSION), ("sketch_version", SKETCH_VERSION)):
        if found[name] > known:
            which = "schema" if name == "version" else "sketch"
            raise InvalidProfile(
                f"made by a newer magneton: {which} version {found[name]}, this one reads up to {known}",
                hint="upgrade magneton: pip install --upgrade magneton",
            )
    return found["version"]


def _parse(data: bytes) -> object:
    try:
        text = data.decode("utf-8")
        parsed = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        json.dumps(parsed, ensure_ascii=False).encode("utf-8")  # an escape can spell half a character
    except RecursionError as error:
        raise damaged(f"{MEMBER} is nested too deeply") from error
    except ValueError as error:
        raise damaged(f"{MEMBER} is not valid JSON") from error
    return parsed


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise damaged(f"{MEMBER} has a field twice")
    return found


def _no_constant(name: str) -> object:
    raise damaged(f"{MEMBER} has the number {quoted(name)}, which JSON does not know")


def _unicode(value: Any) -> Any:
    """``value`` with every string fit for UTF-8."""
    match value:
        case str():
            return unicode_text(value)
        case dict():
            return {unicode_text(key): _unicode(item) for key, item in value.items()}
        case list():
            return [_unicode(item) for item in value]
        case _:
            return value


def _origin_json(origin: Origin) -> dict[str, Any]:
    workload = origin.workload
    return {
        "magneton_version": origin.magneton_version,
        "system": origin.system,
        "options": dict(origin.options),
        "versions": dict(origin.versions),
        "model": origin.model,
        "config_hash": origin.config_hash,
        "weights_hash": origin.weights_hash,
        "workload": {
            "phases": list(workload.phases),
            "batch": workload.batch,
            "prompt_tokens": workload.prompt_tokens,
            "decode_steps": workload.decode_steps,
            "dtype": workload.dtype,
            "seed": workload.seed,
        },
        "device": origin.device,
        "device_kind": origin.device_kind,
        "driver": origin.driver,
        "meter": _meter_json(origin.meter),
        "host_meter": None if origin.host_meter is None else _meter_json(origin.host_meter),
        "replay_cache": origin.replay_cache,
        "threads": origin.threads,
        "grad_mode": origin.grad_mode,
        "mode": origin.mode,
        "dataflow_mode": origin.dataflow_mode,
        "flags": dict(origin.flags),
        "recorded_at": origin.recorded_at,
        "session": origin.session,
    }


def _meter_json(meter: MeterInfo) -> dict[str, Any]:
    return {
        "name": meter.name,
        "unit": meter.unit,
        "provenance": meter.provenance.value,
        "scale_low": float(meter.scale_low),
        "scale_high": float(meter.scale_high),
        "source": meter.source,
        "window_error": float(meter.window_error),
        "device": None if meter.device is None else _device_json(meter.device),
    }


def _device_json(device: DeviceModel) -> dict[str, Any]:
    return {
        "name": device.name,
        **{name: _coefficient_json(getattr(device, name)) for name in _COEFFICIENTS},
        "units": [
            {
                "kind": unit.kind,
                "arithmetic": unit.arithmetic,
                "flop_per_s": _coefficient_json(unit.flop_per_s),
                "j_per_flop": _coefficient_json(unit.j_per_flop),
            }
            for unit in device.units
        ],
    }


def _coefficient_json(coefficient: Coefficient) -> dict[str, Any]:
    figures = {name: float(getattr(coefficient, name)) for name in ("value", "low", "high")}
    return {**figures, "source": coefficient.source}


def _origin(fields: Fields, version: int) -> Origin:
    meter = _meter(fields.nested("meter"), version)
    origin = Origin(
        magneton_version=fields.text("magneton_version"),
        system=fields.text("system"),
        options=fields.mapping("options"),
        versions=fields.mapping("versions"),
        model=fields.text("model"),
        config_hash=fields.text("config_hash"),
        weights_hash=fields.text("weights_hash"),
        workload=_workload(fields.nested("workload")),
        device=fields.text("device"),
        device_kind=fields.choice("device_kind", "cpu", "cuda"),
        driver=fields.text("driver"),
        meter=meter,
        threads=fields.integer("threads"),
        grad_mode=fields.choice("grad_mode", "inference", "no_grad", "grad"),
        mode=fields.choice("mode", "eager", "compiled", "graph"),
        dataflow_mode=fields.choice("dataflow_mode", "eager", "compiled", "graph"),
        flags=fields.mapping("flags"),
        recorded_at=fields.text("recorded_at"),
        session=fields.text("session"),
        host_meter=_host_meter(fields, version),
        replay_cache=_replay_cache(fields, version, meter),
    )
    fields.close()
    return origin


def _workload(fields: Fields) -> Workload:
    workload = Workload(
        phases=fields.texts("phases"),
        batch=fields.integer("batch"),
        prompt_tokens=fields.integer("prompt_tokens"),
        decode_steps=fields.integer("decode_steps"),
        dtype=fields.choice("dtype", "float32", "bfloat16", "float16"),
        seed=fields.integer("seed"),
    )
    fields.close()
    return workload


def _host_meter(fields: Fields, version: int) -> MeterInfo | None:
    nested = fields.nested_or_none("host_meter") if version >= 4 else None
    return None if nested is None else _meter(nested, version)


def _replay_cache(fields: Fields, version: int, meter: MeterInfo) -> Cache:
    """Before version 4 operators were repeated, on what they had left in the caches, for a sensor only."""
    if version < 4:
        return "warm" if meter.provenance is Provenance.MEASURED else "as met"
    return fields.choice("replay_cache", *get_args(Cache))


def _meter(fields: Fields, version: int) -> MeterInfo:
    known: dict[str, Any] = {
        "name": fields.text("name"),
        "unit": fields.choice("unit", "J", "FLOP", "B", "operators"),
        "provenance": Provenance(fields.choice("provenance", *(p.value for p in Provenance))),
        "scale_low": fields.number("scale_low"),
        "scale_high": fields.number("scale_high"),
        "source": fields.text("source"),
    }
    if version >= 4:
        device = fields.nested_or_none("device")
        known["window_error"] = fields.number("window_error")
        known["device"] = None if device is None else _device(device)
    fields.close()
    return _valid(MeterInfo, known, "meter")


def _device(fields: Fields) -> DeviceModel:
    known: dict[str, Any] = {
        "name": fields.text("name"),
        **{name: _coefficient(fields, name) for name in _COEFFICIENTS},
        "units": tuple(_unit(one) for one in fields.nested_list("units")),
    }
    fields.close()
    return _valid(DeviceModel, known, "device")


def _unit(fields: Fields) -> ArithmeticUnit:
    unit = ArithmeticUnit(
        kind=fields.choice("kind", *get_args(UnitKind)),
        arithmetic=fields.choice("arithmetic", *get_args(Arithmetic)),
        flop_per_s=_coefficient(fields, "flop_per_s"),
        j_per_flop=_coefficient(fields, "j_per_flop"),
    )
    fields.close()
    return unit


def _coefficient(fields: Fields, name: str) -> Coefficient:
    inner = fields.nested(name)
    known: dict[str, Any] = {figure: inner.number(figure) for figure in ("value", "low", "high")}
    known["source"] = inner.text("source")
    inner.close()
    return _valid(Coefficient, known, name)


def _valid(kind: type[KindT], known: Mapping[str, Any], name: str) -> KindT:
    """What a file says, as long as its figures agree with each other."""
    try:
        return kind(**known)
    except ValueError as error:
        raise damaged(f"{MEMBER}: {name}: {error}") from error


def _doubt(fields: Fields) -> Doubt:
    doubt = Doubt(kind=fields.text("kind"), text=fields.text("text"))
    fields.close()
    return doubt
