"""What the user asked for, and what it amounts to: a workload, a model, a device, a request to record.

A setting that was not given is None. It is filled in from a profile that the other side has to be like,
else from the defaults here; nothing is measured or loaded.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from magneton.envs.interpreter import Named, runs_here, runs_in_own_environment
from magneton.errors import MagnetonError
from magneton.meters.board import board_count, load_nvml
from magneton.meters.devices import SUFFIX, device_names, read_model
from magneton.meters.registry import require_meter
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.models.model import Model, check_fits, resolve_model
from magneton.models.preset import preset_names
from magneton.names import unknown
from magneton.profile.origin import MeterInfo, Origin
from magneton.record.plan import RecordPlan, Timeouts
from magneton.record.request import Filled, RecordRequest
from magneton.system import CALLABLE, Kind, SystemSpec, describe
from magneton.workload import CALL, DType, GradMode, Phase, Workload

AUTO = "auto"
DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")
DEFAULT_MODEL = "llama"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """As given on the command line; None where nothing was said."""

    model: str | None = None
    scale: str | None = None
    phases: tuple[Phase, ...] | None = None
    batch: int | None = None
    prompt_tokens: int | None = None
    decode_steps: int | None = None
    dtype: DType | None = None
    seed: int | None = None
    meter: str | None = None
    device: str | None = None
    threads: int | None = None
    rounds: int | None = None
    timeout_s: float | None = None
    grad_mode: GradMode | None = None
    cache: Filled | None = None
    python: Named = field(default_factory=Named)


def like(settings: Settings, origin: Origin) -> Settings:
    """``settings`` with what was not given taken from a recording: the other side must do the same."""
    work = origin.workload
    model, scale = (settings.model, settings.scale) if settings.model else _model_of(origin.model)
    return replace(
        settings,
        model=model,
        scale=scale,
        phases=settings.phases or work.phases,
        batch=settings.batch or work.batch,
        prompt_tokens=settings.prompt_tokens or work.prompt_tokens,
        decode_steps=settings.decode_steps or work.decode_steps,
        dtype=settings.dtype or work.dtype,
        seed=work.seed if settings.seed is None else settings.seed,
        meter=settings.meter or _meter_of(origin.meter),
        device=settings.device or ("cpu" if origin.device_kind == "cpu" else "cuda:0"),
        threads=settings.threads or origin.threads,
        grad_mode=settings.grad_mode or origin.grad_mode,
        cache=settings.cache or (None if origin.replay_cache == "as met" else origin.replay_cache),
    )


def _model_of(name: str) -> tuple[str, str | None]:
    """The preset and scale behind a recorded model's name, or the name itself."""
    preset, _, scale = name.rpartition("-")
    return (preset, scale) if preset in preset_names() else (name, None)


def _meter_of(meter: MeterInfo) -> str:
    """The name that opens a recorded meter again; that of a device file does not say where it lies."""
    name, _, variant = meter.name.partition(":")
    if meter.device is None:
        return meter.name
    if variant in device_names() and read_model(variant).digest() == meter.device.digest():
        return meter.name
    raise MagnetonError(
        f"the profile was recorded with a device file of its own, {variant}{SUFFIX}",
        hint=f"name the same file: --meter {name}:PATH/{variant}{SUFFIX}",
    )


def plan_of(settings: Settings) -> RecordPlan:
    """How often to measure, and how long a worker may stay silent."""
    plan = RecordPlan()
    rounds = settings.rounds or plan.rounds
    plan = replace(plan, rounds=rounds, replay_rounds=rounds, in_place_rounds=2 * rounds - 1)
    if settings.timeout_s is not None:
        limit_s = settings.timeout_s
        timeouts = Timeouts(prepare_s=limit_s, trace_s=limit_s, block_s=limit_s, replay_s=limit_s)
        plan = replace(plan, timeouts=timeouts)
    return plan


def requests_for(specs: Sequence[SystemSpec], settings: Settings) -> list[RecordRequest]:
    """What to record for each system; the model is found, or made, once for all of them.

    Not yet in which interpreter: that one may first have to be made (``magneton.sides.ready_requests``).
    """
    _refuse_unknown(settings)
    workloads = [_workload(spec, settings) for spec in specs]
    if all(spec.name == CALLABLE for spec in specs):
        return _requests(specs, workloads, None, settings)
    if any(spec.name == CALLABLE for spec in specs):
        raise MagnetonError(
            "one side is a callable and the other a system that runs a model",
            hint="compare two callables, or two systems",
        )
    model = resolve_model(settings.model or DEFAULT_MODEL, settings.scale)
    for spec, work in zip(specs, workloads, strict=True):
        description = describe(spec.name)
        check_fits(model, work, description.spare_positions)
        if description.models and model.architecture not in description.models:
            raise unknown(f"architecture for {spec.name}", model.architecture, description.models)
    return _requests(specs, workloads, model, settings)


def device_for(names: Sequence[str], device: str | None, named: Named) -> str:
    """``auto`` is the first board where there is one and every system can run there, else the processor."""
    if device not in (None, AUTO):
        return "cuda:0" if device == "cuda" else device
    if not all(_may_run_on_board(name, named) for name in names):
        return "cpu"
    try:
        return "cuda:0" if board_count(load_nvml()) else "cpu"
    except (SensorAbsent, SensorUnusable):
        return "cpu"


def kind_of(device: str) -> Kind:
    return "cpu" if device == "cpu" else "cuda"


def _may_run_on_board(name: str, named: Named) -> bool:
    """Not where it runs in this interpreter, and PyTorch was built without CUDA here."""
    if named.of(name) is not None or runs_here(describe(name), "cuda"):
        return True
    return runs_in_own_environment(name, describe(name), "cpu")


def _refuse_unknown(settings: Settings) -> None:
    """Before a model is made or loaded, which may take long."""
    require_meter(settings.meter or AUTO)
    check_device(settings.device)


def check_device(device: str | None) -> None:
    """Refuse the name of a device that nothing runs on."""
    if not DEVICE.fullmatch(device or AUTO):
        raise unknown("device", device or AUTO, (AUTO, "cpu", "cuda", "cuda:0"))


def _workload(spec: SystemSpec, settings: Settings) -> Workload:
    offered = describe(spec.name).phases
    default = Workload()
    usual = (CALL,) if spec.name == CALLABLE else default.phases
    phases = settings.phases or usual
    for phase in phases:
        if phase not in offered:
            raise unknown(f"phase of {spec.name}", phase, offered)
    if spec.name == CALLABLE:
        return Workload(phases=phases, seed=settings.seed or default.seed)
    return Workload(
        phases=phases,
        batch=settings.batch or default.batch,
        prompt_tokens=settings.prompt_tokens or default.prompt_tokens,
        decode_steps=settings.decode_steps or default.decode_steps,
        dtype=settings.dtype or default.dtype,
        seed=settings.seed or default.seed,
    )


def _requests(
    specs: Sequence[SystemSpec], workloads: Sequence[Workload], model: Model | None, settings: Settings
) -> list[RecordRequest]:
    device = device_for([spec.name for spec in specs], settings.device, settings.python)
    grad_mode = settings.grad_mode or _grad_mode(specs)
    return [
        RecordRequest(
            system=spec.name,
            options=spec.options,
            model=_callable_name(spec) if model is None else model.name,
            model_folder=None if model is None else model.folder,
            config_hash="" if model is None else model.config_hash,
            weights_hash="" if model is None else model.weights_hash,
            workload=work,
            meter=settings.meter or AUTO,
            device=device,
            threads=settings.threads or 1,
            grad_mode=grad_mode,
            cache=settings.cache,
            environment=describe(spec.name).environment,
        )
        for spec, work in zip(specs, workloads, strict=True)
    ]


def _grad_mode(specs: Sequence[SystemSpec]) -> GradMode:
    """Where one system runs under one mode only, the others follow: other modes, other operators."""
    for spec in specs:
        only = describe(spec.name).grad_mode
        if only is not None:
            return only
    return "no_grad"


def _callable_name(spec: SystemSpec) -> str:
    return f"{Path(spec.options['path']).name}:{spec.options['function']}"
