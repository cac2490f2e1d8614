"""Whether two profiles may be compared at all, and what to keep in mind if so.

A ratio of two figures means something only where the same model did the same work on the same device
under the same meter. Anything else is refused by name, before matching spends time on it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from magneton.compare.model import Difference
from magneton.errors import Incomparable
from magneton.profile.model import Profile
from magneton.profile.origin import MeterInfo, Origin

_HINTS = {
    "model": "record both sides with the same --model and --scale",
    "model configuration": "both names stand for different models; record both from the same folder",
    "device": "record both sides on the same machine",
    "device kind": "record both sides with the same --device",
    "meter": "record both sides with the same --meter",
    "meter's unit": "record both sides with the same --meter",
    "meter's provenance": "measured, modelled and counted figures are never mixed: choose one --meter",
    "meter's scale": "the meter was set up differently: use the same version and device file",
    "meter's coefficients": "the device file is not the same: record both sides with one version of it",
    "number of threads": "record both sides with the same --threads",
    "caches in replay": "record both sides with the same --cache",
    "gradients": "gradients kept on one side only are other work: set both systems to the same grad mode",
}
_DECIDES_VALUES = ("model", "model configuration", "phases", "batch", "prompt tokens", "decode steps", "seed")
_WORKLOAD_HINT = "record both sides with the same workload options"


def check_comparable(baseline: Profile, candidate: Profile) -> None:
    """Raise ``Incomparable`` naming the first field that forbids the comparison, with both values."""
    check_origins(baseline.origin, candidate.origin)


def check_origins(baseline: Origin, candidate: Origin) -> None:
    """The same, where a side is not recorded yet but its origin is known."""
    _refuse_differing(_fields(baseline), _fields(candidate), "cannot be compared")


def check_matchable(baseline: Origin, candidate: Origin) -> None:
    """Raise ``Incomparable`` where other values must flow; device, dtype and meter do not matter then."""
    one, other = (
        [field for field in _fields(origin) if field[0] in _DECIDES_VALUES]
        for origin in (baseline, candidate)
    )
    _refuse_differing(one, other, "do not do the same work")


def _refuse_differing(
    baseline: Iterable[tuple[str, object]], candidate: Iterable[tuple[str, object]], what: str
) -> None:
    for (name, one), (_, other) in zip(baseline, candidate, strict=True):
        if one != other:
            raise Incomparable(
                f"these profiles {what}: {name} is {one!r} in the baseline and {other!r} in the candidate",
                hint=_HINTS.get(name, _WORKLOAD_HINT),
            )


def _fields(origin: Origin) -> Iterator[tuple[str, object]]:
    workload, meter = origin.workload, origin.meter
    own_code = origin.config_hash == ""  # two callables have two names and are compared all the same
    yield "model", "a callable of the user's" if own_code else origin.model
    yield "model configuration", origin.config_hash
    yield "device kind", origin.device_kind
    yield "device", origin.device
    yield "meter", meter.name
    yield "meter's unit", meter.unit
    yield "meter's provenance", str(meter.provenance)
    yield "meter's scale", (meter.scale_low, meter.scale_high)
    yield "meter's coefficients", "" if meter.device is None else meter.device.digest()
    yield "phases", workload.phases
    yield "dtype", workload.dtype
    yield "batch", workload.batch
    yield "prompt tokens", workload.prompt_tokens
    yield "decode steps", workload.decode_steps
    yield "seed", workload.seed
    yield "number of threads", origin.threads
    yield "caches in replay", origin.replay_cache
    yield "gradients", "kept" if origin.grad_mode == "grad" else "not kept"


def is_paired(baseline: Origin, candidate: Origin) -> bool:
    """Whether the blocks of both sides were measured alternately, in one session."""
    return baseline.session != "" and baseline.session == candidate.session


def notes(baseline: Profile, candidate: Profile) -> tuple[str, ...]:
    """What does not forbid the comparison but should be said beside its figures."""
    one, other = baseline.origin, candidate.origin
    found: list[str] = []
    if not is_paired(one, other) and not one.meter.follows_from_counts:
        found.append("recorded apart: the sides were not measured alternately, so intervals are wider")
    found += work_notes(one, other)
    if one.host_meter != other.host_meter:
        found.append(_hosts_note(one.host_meter, other.host_meter))
    if one.driver != other.driver:
        found.append(f"the drivers differ: {one.driver or 'none'} and {other.driver or 'none'}")
    return tuple(found)


def _hosts_note(one: MeterInfo | None, other: MeterInfo | None) -> str:
    if one is None or other is None:
        side = "candidate" if one is None else "baseline"
        return f"only the host of the {side} was read, so the hosts are not compared"
    named = " and ".join(f"{meter.name}, {meter.provenance}" for meter in (one, other))
    return f"the hosts were read by unlike meters ({named}), so they are not compared"


def work_notes(one: Origin, other: Origin) -> list[str]:
    """The same of what was done, whatever was measured."""
    found: list[str] = []
    if one.workload.dtype != other.workload.dtype:
        found.append(f"the dtypes differ: {one.workload.dtype} and {other.workload.dtype}")
    if one.weights_hash != other.weights_hash:
        found.append("the weights differ although the model's configuration is the same")
    if one.grad_mode != other.grad_mode:
        found.append(f"the grad modes differ: {one.grad_mode} and {other.grad_mode}")
    if one.mode != other.mode:
        found.append(f"the baseline ran {one.mode}, the candidate {other.mode}")
    for side, origin in (("baseline", one), ("candidate", other)):
        if origin.dataflow_mode != origin.mode:
            found.append(f"the {side} ran {origin.mode}, but its operators were seen {origin.dataflow_mode}")
    return found


def differences(baseline: Origin, candidate: Origin) -> tuple[Difference, ...]:
    """Options, configuration flags and versions that are not the same on both sides."""
    options = _differing("option", baseline.options, candidate.options)
    flags = _differing("flag", baseline.flags, candidate.flags)
    versions = _differing("version", baseline.versions, candidate.versions)
    return (*options, *flags, *versions)


def _differing(
    where: Literal["option", "flag", "version"], one: Mapping[str, str], other: Mapping[str, str]
) -> tuple[Difference, ...]:
    names = (name for name in sorted({*one, *other}) if one.get(name) != other.get(name))
    return tuple(
        Difference(where=where, name=name, baseline=one.get(name), candidate=other.get(name))
        for name in names
    )
