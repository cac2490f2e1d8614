"""What can be measured on this machine, and what to believe of it.

In: the machine, looked at without importing a framework and without changing anything. Out: a
``Diagnosis``, plain data for the report. Probing a board's counter takes about a second.
"""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Literal

from magneton.cache import cache_folder
from magneton.meters.board import board_count, load_nvml, open_board
from magneton.meters.counter import Counter, probe_counter
from magneton.meters.devices import read_device
from magneton.meters.nvml import SHORTEST_S
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.processor import CPUINFO, processor_name
from magneton.system import installed_version

State = Literal["ok", "absent", "unusable"]

ROOMY_BYTES = 2_000_000_000  # a small model, its recordings, and one environment of a system
PACKAGES = ("torch", "transformers", "zeus")
POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at. ``update_period_s`` and ``resolution_j`` are None where they were not probed."""

    name: str
    state: State
    detail: str
    advice: str = ""
    update_period_s: float | None = None
    resolution_j: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """``trust`` says in sentences what figures from here are worth.

    ``meter`` is what ``auto`` takes for work on a board where one can be read, else for work on the CPU.
    """

    machine: tuple[Check, ...]
    sensors: tuple[Check, ...]
    packages: tuple[Check, ...]
    meter: str
    trust: tuple[str, ...]


def load_1min() -> float | None:
    """Runnable processes, averaged over the last minute; None on a system that does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def readable(path: Path) -> bool:
    """Whether this user may read the file."""
    return os.access(path, os.R_OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where the machine is looked at; tests put files and fakes in its place."""

    nvml: Callable[[], Any] = load_nvml
    powercap: Path = POWERCAP
    readable: Callable[[Path], bool] = readable
    cpuinfo: Path = CPUINFO
    cache: Callable[[], Path] = cache_folder
    load_1min: Callable[[], float | None] = load_1min
    clock_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def examine(surroundings: Surroundings | None = None) -> Diagnosis:
    """Look at this machine's sensors, processor, packages and cache folder."""
    around = Surroundings() if surroundings is None else surroundings
    boards = _boards(around)
    rapl = _rapl(around)
    packages = tuple(_package(name) for name in PACKAGES)
    measured = any(board.state == "ok" for board in boards)
    return Diagnosis(
        machine=(_processor(around.cpuinfo), _load(around.load_1min()), _cache(around.cache())),
        sensors=(*boards, rapl, _zeus(packages[-1], (*boards, rapl)), _cpu_clock()),
        packages=packages,
        meter="nvml" if measured else "modelled",
        trust=_trust(boards=measured, rapl=rapl.state == "ok"),
    )


def _boards(around: Surroundings) -> tuple[Check, ...]:
    try:
        nvml = around.nvml()
        count = board_count(nvml)
    except (SensorAbsent, SensorUnusable) as error:
        state = "absent" if isinstance(error, SensorAbsent) else "unusable"
        return (Check(name="nvml", state=state, detail=str(error), advice=error.hint),)
    if count == 0:
        return (Check(name="nvml", state="absent", detail="the driver knows no board"),)
    return tuple(_board(around, nvml, index) for index in range(count))


def _board(around: Surroundings, nvml: Any, index: int) -> Check:
    name = f"nvml, board {index}"
    try:
        board = open_board(nvml, index)
    except (SensorAbsent, SensorUnusable) as error:
        return Check(name=name, state="unusable", detail=str(error), advice=error.hint)
    try:
        counter = Counter(read_j=board.total_energy_j, clock_s=around.clock_s, sleep=around.sleep)
        probe = probe_counter(counter, f"the energy counter of {board.name}")
        power_w = board.instant_power_w()
    except (SensorAbsent, SensorUnusable) as error:
        return Check(name=name, state="unusable", detail=str(error), advice=error.hint)
    finally:
        board.close()
    power = "no instantaneous power" if power_w is None else f"{power_w:.0f} W at this moment"
    return Check(
        name=name,
        state="ok",
        detail=f"{board.name}, driver {board.driver}; {power}",
        advice=f"windows of {SHORTEST_S:g} s or more; the gain of a board is off by up to 5 %",
        update_period_s=probe.period_s,
        resolution_j=probe.step_j,
    )


def _rapl(around: Surroundings) -> Check:
    counters = sorted(around.powercap.glob("*-rapl:[0-9]*/energy_uj"))
    if not counters:
        return Check(
            name="rapl",
            state="absent",
            detail=f"no energy counter of the processor under {around.powercap}",
            advice="virtual machines usually hide it",
        )
    if not all(around.readable(counter) for counter in counters):
        return Check(
            name="rapl",
            state="unusable",
            detail=f"{len(counters)} counters, readable by root only (Linux 5.10 and later)",
            advice=f"an administrator can grant reading of {counters[0]} and its like, or run zeusd",
        )
    return Check(
        name="rapl",
        state="ok",
        detail=f"{len(counters)} counters of the processor, read through the meter zeus",
        advice="on AMD the figures are the firmware's model and leave memory out",
    )


def _zeus(package: Check, sensors: tuple[Check, ...]) -> Check:
    if package.state != "ok":
        return Check(
            name="zeus",
            state="absent",
            detail="the package zeus is not installed; it also reads AMD boards and RAPL",
            advice="pip install 'magneton[zeus]'",
        )
    if installed_version("zeus-ml") is not None:
        return Check(
            name="zeus",
            state="unusable",
            detail="zeus and zeus-ml, its old name, are both installed and overwrite each other",
            advice="pip uninstall zeus-ml zeus, then pip install 'magneton[zeus]'",
        )
    if not any(sensor.state == "ok" for sensor in sensors):
        return Check(
            name="zeus",
            state="unusable",
            detail=f"zeus {package.detail}; neither a board nor RAPL can be read (AMD was not probed)",
            advice="python -m zeus.show_env lists what Zeus sees",
        )
    return Check(name="zeus", state="ok", detail=f"zeus {package.detail}")


def _cpu_clock() -> Check:
    """The modelled meter's sensor: how finely this process's CPU time can be read."""
    reads_ns = [time.process_time_ns() for _ in range(2000)]
    steps_ns = [after - before for before, after in pairwise(reads_ns) if after > before]
    step_s = median(steps_ns) * 1e-9 if steps_ns else time.get_clock_info("process_time").resolution
    power = read_device("cpu").core_power_w
    coarse = step_s > 1e-4
    return Check(
        name="cpu clock",
        state="unusable" if coarse else "ok",
        detail=f"CPU time of a process in steps of {step_s * 1e6:.2f} us, times {power.value:g} W per core",
        advice="too coarse for single operators"
        if coarse
        else "measure with one thread: spinning threads count",
        update_period_s=step_s,
        resolution_j=step_s * power.value,
    )


def _processor(cpuinfo: Path) -> Check:
    cores = os.cpu_count() or 1
    return Check(name="processor", state="ok", detail=f"{processor_name(cpuinfo)}, {cores} cores")


def _load(runnable: float | None) -> Check:
    if runnable is None:
        return Check(name="load", state="absent", detail="this system tells no load")
    busy = runnable > 0.5 * (os.cpu_count() or 1)
    return Check(
        name="load",
        state="ok",
        detail=f"{runnable:.2f} runnable processes over the last minute",
        advice="other work disturbs: compare sides measured alternately, and trust no wall-clock time"
        if busy
        else "",
    )


def _cache(folder: Path) -> Check:
    nearest = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        return Check(
            name="cache",
            state="unusable",
            detail=f"{folder} cannot be written",
            advice="set MAGNETON_CACHE to a folder that can",
        )
    free_bytes = shutil.disk_usage(nearest).free
    return Check(
        name="cache",
        state="ok",
        detail=f"{folder}, {free_bytes / 1e9:.1f} GB free",
        advice=""
        if free_bytes >= ROOMY_BYTES
        else "make room, or set MAGNETON_CACHE to a folder on another disk",
    )


def _package(name: str) -> Check:
    found = installed_version(name)
    if found is None:
        return Check(name=name, state="absent", detail="not installed")
    return Check(name=name, state="ok", detail=found)


def _trust(*, boards: bool, rapl: bool) -> tuple[str, ...]:
    counts = "counted: exact and the same on every machine, and silent on how well the work is done"
    modelled = "modelled: ratios of CPU time of one thread; joules only within a factor of two"
    if boards:
        return (
            "nvml: ratios on one board; joules within 5 %, once windows are long enough",
            modelled + "; nothing of what a board spends",
            counts,
        )
    if rapl:
        return ("zeus: packages as a whole, neighbours included", modelled, counts)
    return ("measured: nothing, there is no sensor that may be read", modelled, counts)
