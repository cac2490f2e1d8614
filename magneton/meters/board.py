"""One NVIDIA board through NVML: its counter, its power, and what becomes of NVML's refusals.

Everything that NVML may answer instead of a figure becomes ``SensorAbsent`` or ``SensorUnusable`` here, and
millijoules and milliwatts become SI here. The NVML module is a parameter: tests pass one of their own.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from magneton.meters.sensors import SensorAbsent, SensorUnusable

# Field ids of NVML; bindings older than the driver lack the names.
POWER_INSTANT = 186
POWER_AVERAGE = 185
ENERGY_FIELDS = (83, 191)

_MILLI = 1e-3
_TURING = 6  # NVML_DEVICE_ARCH_TURING
_AMPERE = 7
_GA100 = re.compile(r"\b(A100|A800|A30)\b")


class BoardLost(SensorUnusable):
    """The board fell off the bus. It does not come back while this process lives."""


class BoardForbidden(SensorUnusable):
    """NVML refuses this process. A board that may not even be opened is counted by NVML and not by CUDA."""


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
        with sensor_errors(self.nvml, f"the energy counter of {self.name}"):
            return self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle) * _MILLI

    def instant_power_w(self) -> float | None:
        """Power without averaging; None where the part does not offer it."""
        with sensor_errors(self.nvml, f"the power sensor of {self.name}"):
            (field,) = self._fields((POWER_INSTANT,))
            if field is not None:
                return field.value.uiVal * _MILLI
            return (
                self.nvml.nvmlDeviceGetPowerUsage(self.handle) * _MILLI if self._usage_is_instant() else None
            )

    def offered_fields(self) -> tuple[int, ...]:
        """Which of the fields for power and energy this part answers."""
        asked = (POWER_INSTANT, POWER_AVERAGE, *ENERGY_FIELDS)
        with sensor_errors(self.nvml, f"the fields of {self.name}"):
            answered = self._fields(asked)
        return tuple(number for number, field in zip(asked, answered, strict=True) if field is not None)

    def close(self) -> None:
        """NVML counts its users: each opened board lets go once."""
        _let_go(self.nvml)

    def _fields(self, numbers: tuple[int, ...]) -> tuple[Any, ...]:
        try:
            fields = self.nvml.nvmlDeviceGetFieldValues(self.handle, list(numbers))
        except self.nvml.NVMLError as error:
            if error.value in _not_offered(self.nvml):
                return (None,) * len(numbers)
            raise
        return tuple(field if field.nvmlReturn == 0 else None for field in fields)

    def _usage_is_instant(self) -> bool:
        """The plain power call averages over a second from Ampere on, except on GA100 (NVML's manual)."""
        try:
            architecture = self.nvml.nvmlDeviceGetArchitecture(self.handle)
        except self.nvml.NVMLError as error:
            if error.value in _not_offered(self.nvml):
                return False
            raise
        return architecture <= _TURING or (architecture == _AMPERE and bool(_GA100.search(self.name)))


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
    with sensor_errors(nvml, "NVML"):
        nvml.nvmlInit()
        try:
            return int(nvml.nvmlDeviceGetCount())
        finally:
            _let_go(nvml)


def open_board(nvml: Any, index: int) -> Board:
    """The board with this NVML index, which counts by PCI bus whatever CUDA_VISIBLE_DEVICES hides.

    Close it after use.
    """
    with sensor_errors(nvml, f"NVIDIA board {index}"):
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
            _let_go(nvml)
            raise


def _let_go(nvml: Any) -> None:
    """A driver that fails even at that, as where a board is lost, costs nothing of what was read."""
    with suppress(nvml.NVMLError):
        nvml.nvmlShutdown()


@contextmanager
def sensor_errors(nvml: Any, what: str) -> Generator[None]:
    """What NVML refuses inside becomes an error that says what to do."""
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
    if code == nvml.NVML_ERROR_GPU_IS_LOST:
        return BoardLost(
            f"cannot read {what}: {error}",
            hint="see the kernel's log (Xid); the board needs a reset or the machine a restart",
        )
    if code == nvml.NVML_ERROR_NO_PERMISSION:
        return BoardForbidden(
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
