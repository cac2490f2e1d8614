"""One NVIDIA board through NVML: which one the framework means, its counter, its instantaneous power.

Everything that NVML may answer instead of a figure becomes ``SensorAbsent`` or ``SensorUnusable`` here, and
millijoules and milliwatts become SI here. The NVML module is a parameter: tests pass one of their own.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from magneton.meters.sensors import SensorAbsent, SensorUnusable

_MILLI = 1e-3
_POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT; bindings older than the driver lack the name


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """An open board."""

    nvml: Any
    handle: Any
    name: str
    uuid: str
    driver: str

    def total_energy_j(self) -> float:
        """The counter: joules since the driver was loaded. It advances in steps of its update period."""
        with _sensor_errors(self.nvml, f"the energy counter of {self.name}"):
            return self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle) * _MILLI

    def instant_power_w(self) -> float | None:
        """Power without averaging; None where the part does not offer it."""
        with _sensor_errors(self.nvml, f"the power sensor of {self.name}"):
            try:
                (field,) = self.nvml.nvmlDeviceGetFieldValues(self.handle, [_POWER_INSTANT])
            except self.nvml.NVMLError as error:
                if error.value in _not_offered(self.nvml):
                    return None
                raise
        return field.value.uiVal * _MILLI if field.nvmlReturn == 0 else None

    def close(self) -> None:
        """NVML counts its users: each opened board lets go once."""
        self.nvml.nvmlShutdown()


def load_nvml() -> Any:
    """The bindings of nvidia-ml-py, which another package of the same import name may shadow."""
    try:
        nvml = import_module("pynvml")
    except ModuleNotFoundError as error:
        raise SensorAbsent(
            "the package nvidia-ml-py is not installed", hint="pip install nvidia-ml-py"
        ) from error
    return checked_bindings(nvml)


def checked_bindings(nvml: Any) -> Any:
    """``nvml`` if it is nvidia-ml-py's module, and not that of the abandoned package called pynvml."""
    if not hasattr(nvml, "_nvmlGetFunctionPointer"):
        raise SensorUnusable(
            f"the package pynvml shadows nvidia-ml-py ({getattr(nvml, '__file__', 'unknown file')})",
            hint="pip uninstall pynvml, then pip install --force-reinstall nvidia-ml-py",
        )
    return nvml


def board_count(nvml: Any) -> int:
    """How many boards the driver knows; an absent driver is an error and not 0."""
    with _sensor_errors(nvml, "NVML"):
        nvml.nvmlInit()
        try:
            return int(nvml.nvmlDeviceGetCount())
        finally:
            nvml.nvmlShutdown()


def open_board(nvml: Any, index: int) -> Board:
    """The board with this NVML index, which counts by PCI bus whatever CUDA_VISIBLE_DEVICES hides.

    Close it after use.
    """
    with _sensor_errors(nvml, f"NVIDIA board {index}"):
        nvml.nvmlInit()
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            return Board(
                nvml=nvml,
                handle=handle,
                name=str(nvml.nvmlDeviceGetName(handle)),
                uuid=str(nvml.nvmlDeviceGetUUID(handle)),
                driver=str(nvml.nvmlSystemGetDriverVersion()),
            )
        except nvml.NVMLError:
            nvml.nvmlShutdown()
            raise


def board_index(nvml: Any, device: str, environment: Mapping[str, str]) -> int:
    """The NVML index of what the framework calls ``device`` ("cuda:1") under CUDA_VISIBLE_DEVICES."""
    kind, _, ordinal_text = device.partition(":")
    if kind != "cuda" or not (ordinal_text or "0").isdecimal():
        raise SensorAbsent(f"NVML reads NVIDIA boards, not {device!r}", hint="run on a device such as cuda:0")
    ordinal = int(ordinal_text or "0")
    count = board_count(nvml)
    names, uuids = _boards(nvml, count)
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    entries = [str(index) for index in range(count)] if visible is None else visible.split(",")
    if ordinal >= len(entries) or not entries[ordinal].strip():
        raise SensorAbsent(
            f"there is no {device}: CUDA_VISIBLE_DEVICES={visible!r}, {count} NVIDIA boards",
            hint="choose a device that is visible",
        )
    entry = entries[ordinal].strip()
    if entry.startswith("MIG"):
        raise SensorUnusable(
            f"{device} is a MIG slice, and its board has one energy counter for all slices",
            hint="measure on a whole board, or use --meter counted:bytes",
        )
    if entry.isdecimal():
        _check_order(names, environment)
        matching = [index for index in range(count) if index == int(entry)]
    else:
        matching = [index for index, uuid in enumerate(uuids) if uuid.startswith(entry)]
    if len(matching) != 1:
        raise SensorAbsent(
            f"CUDA_VISIBLE_DEVICES names {entry!r}, which is not one of the {count} NVIDIA boards",
            hint="list them with nvidia-smi -L",
        )
    return matching[0]


def _boards(nvml: Any, count: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names: list[str] = []
    uuids: list[str] = []
    for index in range(count):
        board = open_board(nvml, index)
        names.append(board.name)
        uuids.append(board.uuid)
        board.close()
    return tuple(names), tuple(uuids)


def _check_order(names: tuple[str, ...], environment: Mapping[str, str]) -> None:
    """CUDA numbers boards by speed unless told otherwise, NVML by bus: with unlike boards the two differ."""
    if len(set(names)) > 1 and environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise SensorUnusable(
            f"boards differ ({', '.join(names)}), so CUDA may number them unlike NVML",
            hint="set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name a board by its UUID in CUDA_VISIBLE_DEVICES",
        )


@contextmanager
def _sensor_errors(nvml: Any, what: str) -> Generator[None]:
    try:
        yield
    except nvml.NVMLError as error:
        raise _sensor_error(nvml, error, what) from error


def _sensor_error(nvml: Any, error: Any, what: str) -> SensorAbsent | SensorUnusable:
    code = error.value
    if code in (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED):
        return SensorAbsent(
            f"no NVIDIA driver: {error}", hint="install or load the driver, or choose another meter"
        )
    if code in (nvml.NVML_ERROR_NOT_FOUND, nvml.NVML_ERROR_INVALID_ARGUMENT):
        return SensorAbsent(f"there is no {what}: {error}", hint="list the boards with nvidia-smi -L")
    if code == nvml.NVML_ERROR_NO_PERMISSION:
        return SensorUnusable(
            f"no permission to read {what}: {error}",
            hint="make the NVIDIA device files readable; a container needs the driver capability utility",
        )
    if code in _not_offered(nvml):
        return SensorUnusable(
            f"this part or driver does not offer {what}: {error}",
            hint="energy counters need Volta or later and a matching driver; or use --meter counted:bytes",
        )
    return SensorUnusable(f"cannot read {what}: {error}", hint="see what nvidia-smi says about the board")


def _not_offered(nvml: Any) -> tuple[int, ...]:
    return (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND)
