"""One line each for what a profile says about where it comes from."""

from rich.text import Text

from magneton.profile.model import Doubt, Frame
from magneton.profile.origin import MeterInfo, Origin
from magneton.report.escape import visible
from magneton.system import system_label

_PROVENANCE = {
    "measured": "measured by a sensor",
    "modelled": "modelled, not measured",
    "counted": "counted, without noise",
}


def system_line(origin: Origin) -> str:
    """``transformers:attn_implementation=eager (torch 2.13.0, mode eager)``."""
    name = system_label(origin.system, origin.options)
    versions = ", ".join(f"{key} {value}" for key, value in origin.versions.items())
    return visible(f"{name} ({versions})" if versions else name)


def workload_line(origin: Origin) -> str:
    work = origin.workload
    if work.phases == ("call",):
        return visible(f"one call per step, seed {work.seed}")
    return visible(
        f"{', '.join(work.phases)}; batch {work.batch}, {work.prompt_tokens} prompt tokens,"
        f" {work.decode_steps} decode steps, {work.dtype}, seed {work.seed}"
    )


def device_line(origin: Origin) -> str:
    threads = f"{origin.threads} thread" + ("s" if origin.threads != 1 else "")
    driver = f", driver {origin.driver}" if origin.driver else ""
    line = f"{origin.device} ({origin.device_kind}, {threads}{driver})"
    model = origin.meter.device
    return visible(line if model is None else f"modelled for {model.name}; ran on {line}")


def meter_facts(origin: Origin) -> tuple[tuple[str, str], ...]:
    """The meter of the device, and that of the host where there is one beside it."""
    facts = [("meter", meter_line(origin.meter))]
    if origin.host_meter is not None:
        facts.append(("host meter", meter_line(origin.host_meter)))
    return tuple(facts)


def compared_meter_facts(baseline: Origin, candidate: Origin) -> tuple[tuple[str, str], ...]:
    """The one meter of both devices, and of the hosts one or two."""
    if baseline.host_meter == candidate.host_meter:
        return meter_facts(baseline)
    hosts = (
        ("not read" if origin.host_meter is None else meter_line(origin.host_meter))
        for origin in (baseline, candidate)
    )
    sides = zip(("baseline's host", "candidate's host"), hosts, strict=True)
    return (("meter", meter_line(baseline.meter)), *sides)


def meter_line(meter: MeterInfo) -> str:
    scale = ""
    if (meter.scale_low, meter.scale_high) != (1.0, 1.0):
        scale = f"; true figures lie between {meter.scale_low:.3g} and {meter.scale_high:.3g} times these"
    source = f": {meter.source}" if meter.source else ""
    return visible(f"{meter.name} ({_PROVENANCE[meter.provenance]}){source}{scale}")


def doubt_line(doubt: Doubt) -> str:
    return visible(f"{doubt.text} [{doubt.kind}]")


def frame_text(frame: Frame | None) -> Text:
    """``modeling_llama.py:212 in forward``, then the line's code."""
    if frame is None:
        return Text("no line of user or framework code was seen", style="dim")
    place = Text(visible(f"{short_file(frame.file)}:{frame.line}"), style="cyan")
    place.append(visible(f" in {frame.function}"), style="default")
    if frame.code.strip():
        place.append("\n" + visible(frame.code.strip()), style="italic")
    return place


def short_place(frame: Frame | None) -> str:
    """``modeling_llama.py:212``; nothing where no line is known."""
    return "" if frame is None else visible(f"{short_file(frame.file).rpartition('/')[2]}:{frame.line}")


def short_file(file: str) -> str:
    """What follows ``site-packages``; the whole path of a user's own file."""
    for folder in ("site-packages/", "dist-packages/"):
        _, found, rest = file.rpartition(folder)
        if found:
            return rest
    return file
