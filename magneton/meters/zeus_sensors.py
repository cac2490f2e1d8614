"""Which sensors Zeus reads for work on one device, found before anything is measured.

Zeus is asked part by part, because its monitor answers an absent or forbidden sensor with silence, a platform
zone with a processor too many, and a board without a counter with a process that polls without pause.
"""

import multiprocessing
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import Empty
from typing import Any, Protocol

from magneton.meters.board import load_nvml
from magneton.meters.nvml import GAIN as NVIDIA_GAIN
from magneton.meters.powercap import PLATFORM, zone_names
from magneton.meters.rapl import UNKNOWN_GAIN
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.visible import board_indices

MORE_THAN_A_BOARD = {
    "MI250": ", both dies",
    "GH200": " and its Grace processor",
    "GB200": " and its Grace processor",
}
_STOP_S = 1.0
UNKNOWN_TO_ZEUS = ("ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
ZEUSD = ("ZEUSD_SOCK_PATH", "ZEUSD_HOST_PORT")
WINDOW = "magneton"

TOTAL_FIELD = "total_energy_mj"  # Jetson's input rail: its processor and board are in it
PART_FIELDS = (  # none is part of another: Apple's cores and clusters are in cpu_total_mj
    "cpu_total_mj",
    "cpu_energy_mj",
    "gpu_mj",
    "gpu_energy_mj",
    "gpu_sram_mj",
    "dram_mj",
    "ane_mj",
)

Faults = tuple[type[Exception], ...]


class ZeusMeasurement(Protocol):
    """Joules by index, None for what Zeus could not read; ``soc_energy`` has fields in millijoules."""

    @property
    def gpu_energy(self) -> Mapping[int, float]: ...

    @property
    def cpu_energy(self) -> Mapping[int, float] | None: ...

    @property
    def dram_energy(self) -> Mapping[int, float] | None: ...

    @property
    def soc_energy(self) -> object | None: ...


class ZeusWindows(Protocol):
    """The part of ``zeus.monitor.ZeusMonitor`` that is used."""

    def begin_window(self, key: str, sync_execution: bool = True, restart: bool = False) -> None: ...

    def end_window(self, key: str, sync_execution: bool = True) -> ZeusMeasurement: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeusSensors:
    """An open monitor and what it reads. ``memory`` are those of ``packages`` that count it apart.

    ``helpers`` are the processes that Zeus started; ``faults`` what it raises when a sensor fails.
    """

    windows: ZeusWindows
    boards: Mapping[int, str]  # name by index
    packages: tuple[int, ...] = ()
    memory: tuple[int, ...] = ()
    soc_fields: tuple[str, ...] = ()
    gain: float = NVIDIA_GAIN  # of boards or chip
    relay: str = ""  # "zeusd (ZEUSD_SOCK_PATH=...)"; "" where Zeus reads by itself
    faults: Faults = (OSError,)
    helpers: tuple[BaseProcess, ...] = ()


def open_sensors(device: str, environment: Mapping[str, str] = os.environ) -> ZeusSensors:
    """What Zeus reads for ``device`` ("cpu", "cuda:0", several boards joined by commas): the boards and the
    processors beside them, or the processors alone.

    A system on a chip is read as a whole, whichever of its parts the work runs on.
    """
    zeus = _Zeus.imported()
    relay = _relay(environment)
    before = set(multiprocessing.active_children())
    try:
        with _zeus_errors(zeus, relay):
            sensors = _open(zeus, device, relay, environment)
            sensors.windows.begin_window(
                WINDOW, sync_execution=False
            )  # not in one that counts: helpers start
            sensors.windows.end_window(WINDOW, sync_execution=False)
    except (SensorAbsent, SensorUnusable):
        end_helpers(set(multiprocessing.active_children()) - before)
        raise
    return replace(sensors, helpers=tuple(set(multiprocessing.active_children()) - before))


def end_helpers(helpers: Iterable[BaseProcess]) -> None:
    """End the processes that Zeus started to watch its counters; by itself it keeps them to the end."""
    ending = tuple(helpers)
    for helper in ending:
        helper.terminate()
    for helper in ending:
        helper.join(_STOP_S)
        helper.kill()
        helper.join(_STOP_S)


def _open(zeus: "_Zeus", device: str, relay: str, environment: Mapping[str, str]) -> ZeusSensors:
    soc_fields = _soc_fields(zeus)
    on_boards = device.startswith("cuda") and not soc_fields
    boards = _boards(zeus, device, relay, environment) if on_boards else {}
    packages, memory, missing = _packages(zeus)
    if not boards and not packages and not soc_fields:
        closed = relay or isinstance(missing, zeus.cpu.ZeusCPUNoPermissionError)
        kind = SensorUnusable if closed else SensorAbsent
        raise kind(f"Zeus finds no sensor that may be read here: {missing}", hint=_host_hint(relay))
    return ZeusSensors(
        windows=zeus.monitor.ZeusMonitor(gpu_indices=list(boards), cpu_indices=list(packages)),
        boards=boards,
        packages=packages,
        memory=memory,
        soc_fields=soc_fields,
        gain=NVIDIA_GAIN if boards and not _are_of_amd(zeus, zeus.device.get_gpus()) else UNKNOWN_GAIN,
        relay=relay,
        faults=zeus.faults,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Zeus:
    """The modules of the package that are used."""

    monitor: Any
    device: Any
    gpus: Any
    gpu: Any
    cpu: Any
    soc: Any
    error: type[Exception]
    faults: Faults

    @classmethod
    def imported(cls) -> "_Zeus":
        load_nvml()  # Zeus fails in stranger ways where another package shadows the bindings
        try:
            error = import_module("zeus.exception").ZeusBaseError
            http_error = import_module("httpx").HTTPError
            return cls(
                monitor=import_module("zeus.monitor"),
                device=import_module("zeus.device"),
                gpus=import_module("zeus.device.gpu"),
                gpu=import_module("zeus.device.gpu.common"),
                cpu=import_module("zeus.device.cpu.common"),
                soc=import_module("zeus.device.soc.common"),
                error=error,
                faults=(error, http_error, OSError, ValueError, Empty),
            )
        except ModuleNotFoundError as problem:
            raise SensorAbsent(
                f"the meter zeus needs the package {problem.name}, which is not installed",
                hint="pip install 'magneton[zeus]'",
            ) from problem
        except ImportError as problem:
            raise SensorUnusable(
                f"the package zeus is broken: {problem}",
                hint="pip uninstall zeus zeus-ml (its old name), then pip install 'magneton[zeus]'",
            ) from problem


def _soc_fields(zeus: _Zeus) -> tuple[str, ...]:
    """Fields that add up to a whole chip (Apple's, Jetson); none where this machine has no such sensor."""
    try:
        offered: set[str] = zeus.device.get_soc().get_available_metrics()
    except zeus.soc.ZeusSoCInitError:
        return ()
    if TOTAL_FIELD in offered:
        return (TOTAL_FIELD,)
    return tuple(field for field in PART_FIELDS if field in offered)


def _boards(zeus: _Zeus, device: str, relay: str, environment: Mapping[str, str]) -> Mapping[int, str]:
    """Names by Zeus's index, which counts what is visible, as the framework does."""
    try:
        boards = zeus.device.get_gpus()
    except zeus.gpu.ZeusGPUInitError as error:
        kind = SensorUnusable if relay else SensorAbsent
        raise kind(f"Zeus reads no board: {error}", hint=_board_hint(relay)) from error
    indices = [int(one.strip().partition(":")[2] or "0") for one in device.split(",")]
    if max(indices) >= len(boards):
        raise SensorAbsent(
            f"Zeus sees {len(boards)} boards, so there is no {device}", hint=_board_hint(relay)
        )
    _check_numbering(zeus, boards, device, environment)
    return {index: _trusted_name(boards, index) for index in indices}


def _check_numbering(zeus: _Zeus, boards: Any, device: str, environment: Mapping[str, str]) -> None:
    """Zeus counts NVIDIA's boards by bus, and knows one of the variables that hide AMD's."""
    if not _are_of_amd(zeus, boards):
        board_indices(load_nvml(), device, environment)
        return
    renumbering = [name for name in UNKNOWN_TO_ZEUS if name in environment]
    if renumbering:
        raise SensorUnusable(
            f"{renumbering[0]} renumbers boards, and Zeus does not follow it",
            hint="hide boards with HIP_VISIBLE_DEVICES instead",
        )


def _are_of_amd(zeus: _Zeus, boards: Any) -> bool:
    return isinstance(boards, zeus.gpus.AMDGPUs)


def _trusted_name(boards: Any, index: int) -> str:
    name = str(boards.get_name(index))
    if not boards.supports_get_total_energy_consumption(index):
        raise SensorUnusable(
            f"{name} has no energy counter that Zeus trusts, and its power is not polled: Zeus would do so "
            "in a process that never rests",
            hint="boards before Volta and some of AMD (MI100, MI210, every second die of MI250) have none: "
            "use --meter modelled",
        )
    more = next((what for part, what in MORE_THAN_A_BOARD.items() if part in name), "")
    return f"{name}{more}"


def _packages(zeus: _Zeus) -> tuple[tuple[int, ...], tuple[int, ...], Exception | None]:
    """Processors, those of them with a counter for memory, and why there are none."""
    try:
        cpus = zeus.device.get_cpus()
    except (zeus.cpu.ZeusCPUInitError, zeus.cpu.ZeusCPUNoPermissionError) as error:
        return (), (), error
    names = zone_names(Path(cpus.rapl_dir))
    zones = dict(enumerate(cpus.cpus))
    platform = {index for index, zone in zones.items() if names.get(zone.cpu_index) == PLATFORM}
    chosen = tuple(index for index in zones if index not in platform) or tuple(platform)
    memory = tuple(index for index in chosen if zones[index].supports_get_dram_energy_consumption())
    return chosen, memory, None if chosen else LookupError("RAPL shows no zone")


@contextmanager
def _zeus_errors(zeus: _Zeus, relay: str) -> Generator[None]:
    """Whatever else Zeus raises on the way becomes a sensor that cannot be used."""
    try:
        yield
    except zeus.faults as error:
        raise SensorUnusable(f"Zeus cannot read its sensors: {error}", hint=_board_hint(relay)) from error


def _relay(environment: Mapping[str, str]) -> str:
    named = [f"{name}={environment[name]}" for name in ZEUSD if name in environment]
    return f"zeusd ({named[0]})" if named else ""


def _board_hint(relay: str) -> str:
    hint = (
        "CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES may hold numbers only; python -m zeus.show_env lists "
        "what Zeus sees"
    )
    return f"does {relay} run, and does ZEUSD_TOKEN permit reading? {hint}" if relay else hint


def _host_hint(relay: str) -> str:
    if relay:
        return f"does {relay} run, and does ZEUSD_TOKEN permit reading? or use --meter modelled"
    return (
        "RAPL needs root, or the daemon zeusd and its address in ZEUSD_SOCK_PATH or ZEUSD_HOST_PORT; boards "
        "need their driver; or use --meter modelled"
    )
