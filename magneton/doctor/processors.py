"""The processors' own counters (RAPL), and the clock that the model of a CPU rests on."""

import time
from dataclasses import replace
from itertools import pairwise
from statistics import median

from magneton.doctor.model import Check, Conditions
from magneton.doctor.surroundings import Surroundings
from magneton.meters.clock import Clock
from magneton.meters.devices import read_device
from magneton.meters.powercap import MEMORY, PLATFORM, Zone, summed_zones, zone_names
from magneton.meters.rapl import AMD, RaplMeter, probe_period_s, processor_vendor
from magneton.meters.sensors import SensorAbsent, SensorUnusable

WATCHED_S = 0.05  # to see what the zones draw now
COARSE_S = 1e-4  # of the CPU clock: single operators are shorter


def look_at_rapl(around: Surroundings) -> Check:
    """Which zones there are, which of them are summed, and what they do."""
    try:
        zones = summed_zones(around.powercap, around.read_file)
        vendor = processor_vendor(around.cpuinfo)
        meter = RaplMeter(zones, clock=around.clock, vendor=vendor)
        periods_s = [probe_period_s(zone, around.clock) for zone in zones]
        power_w = _power_w(zones, around.clock)
    except SensorAbsent as error:
        return Check(name="rapl", state="absent", detail=str(error), advice=error.hint)
    except SensorUnusable as error:
        return Check(name="rapl", state="unusable", detail=str(error), advice=error.hint)
    info = meter.info()
    period_s = max(found_s for found_s in periods_s if found_s is not None)
    return Check(
        name="rapl",
        state="ok",
        detail=_zones(around, zones),
        advice=_advice(zones, vendor),
        reads=info.source,
        update_period_s=period_s,
        resolution_j=power_w * period_s,
        shortest_window_s=meter.shortest_window_s,
        gain=info.scale_high - 1,
        now=Conditions(power_w=power_w),
    )


def look_at_cpu_clock() -> Check:
    """The modelled meter's sensor: how finely this process's CPU time can be read."""
    reads_ns = [time.process_time_ns() for _ in range(2000)]
    steps_ns = [after - before for before, after in pairwise(reads_ns) if after > before]
    step_s = median(steps_ns) * 1e-9 if steps_ns else time.get_clock_info("process_time").resolution
    power = read_device("cpu").core_power_w
    check = Check(
        name="cpu clock",
        state="ok",
        detail=f"CPU time of a process in steps of {step_s * 1e6:.2f} us, times {power.value:g} W per core",
        advice="measure with one thread: spinning threads count",
        update_period_s=step_s,
        resolution_j=step_s * power.value,
        shortest_window_s=0.0,
        gain=power.high / power.value - 1,
    )
    if step_s <= COARSE_S:
        return check
    return replace(
        check, state="unusable", advice="too coarse for single operators: use --meter counted:bytes"
    )


def _zones(around: Surroundings, zones: tuple[Zone, ...]) -> str:
    """Also those that are not in the sum, because they would be in it twice."""
    summed = [zone.label for zone in zones]
    text = f"summed: {', '.join(summed)}"
    others = sorted(set(zone_names(around.powercap, around.read_file).values()) - set(summed) - {""})
    if others:
        text += f"; left out: {', '.join(others)}"
        text += " (holds the packages)" if others == [PLATFORM] else ""
    unranged = [zone.label for zone in zones if zone.range_uj is None]
    if unranged:
        text += f"; where {', '.join(unranged)} starts again from 0 is not told: such a window is a gap"
    return text


def _advice(zones: tuple[Zone, ...], vendor: str) -> str:
    advice = ["it reads whole packages: neighbours on this machine are in the figures"]
    if not any(zone.label.endswith(f"/{MEMORY}") for zone in zones):
        advice.append("memory is not")
    if vendor == AMD:
        advice.append("on AMD they are the firmware's model")
    return "; ".join(advice)


def _power_w(zones: tuple[Zone, ...], clock: Clock) -> float:
    """0.0 where a counter starts again meanwhile: this is for a look, and not for a measurement."""
    began_s, before_uj = clock.now_s(), sum(zone.energy_uj() for zone in zones)
    clock.sleep(WATCHED_S)
    risen_uj = sum(zone.energy_uj() for zone in zones) - before_uj
    return max(0.0, risen_uj * 1e-6 / (clock.now_s() - began_s))
