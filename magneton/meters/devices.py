"""Device files: energy coefficients, each with its range and where it comes from.

``configs/devices/cpu.toml`` is one core, for CPU-seconds; all others hold what the model of a whole device
needs. Files are in the units that data sheets use (GB/s, TFLOP/s, pJ), which stand in the keys' names.
"""

from dataclasses import dataclass
from pathlib import Path

from magneton.configs import config_names, config_path, read_config
from magneton.errors import MagnetonError
from magneton.profile.device import Arithmetic, ArithmeticUnit, Coefficient, DeviceModel, UnitKind

CPU = "cpu"
SUFFIX = ".toml"
_MICRO, _PICO, _MEGA, _GIGA, _TERA = 1e-6, 1e-12, 1e6, 1e9, 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What the modelled meter knows about a core."""

    name: str
    core_power_w: Coefficient  # of one busy core, with its share of the package


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitEntry:
    """One ``[[units]]`` of a file."""

    kind: UnitKind
    arithmetic: Arithmetic
    peak_tflop_per_s: Coefficient
    energy_pj_per_flop: Coefficient


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFile:
    """A ``DeviceModel`` as it is written down."""

    name: str
    constant_power_w: Coefficient
    tdp_w: Coefficient
    shortest_kernel_us: Coefficient
    memory_gb_per_s: Coefficient
    memory_pj_per_byte: Coefficient
    cache_mb: Coefficient
    cache_pj_per_byte: Coefficient
    units: tuple[UnitEntry, ...]

    def __post_init__(self) -> None:
        self.model()  # what does not hold together is refused with the name of the file

    def model(self) -> DeviceModel:
        """The same in SI units."""
        return DeviceModel(
            name=self.name,
            constant_power_w=self.constant_power_w,
            tdp_w=self.tdp_w,
            shortest_kernel_s=self.shortest_kernel_us.times(_MICRO),
            memory_bytes_per_s=self.memory_gb_per_s.times(_GIGA),
            memory_j_per_byte=self.memory_pj_per_byte.times(_PICO),
            cache_bytes=self.cache_mb.times(_MEGA),
            cache_j_per_byte=self.cache_pj_per_byte.times(_PICO),
            units=tuple(
                ArithmeticUnit(
                    kind=entry.kind,
                    arithmetic=entry.arithmetic,
                    flop_per_s=entry.peak_tflop_per_s.times(_TERA),
                    j_per_flop=entry.energy_pj_per_flop.times(_PICO),
                )
                for entry in self.units
            ),
        )


def device_names() -> tuple[str, ...]:
    """The devices that ship with a model."""
    return tuple(name for name in config_names("devices") if name != CPU)


def read_device(name: str) -> Device:
    """The core in ``configs/devices/NAME.toml``."""
    return read_config(config_path("devices", name), Device)


def read_model(name: str) -> DeviceModel:
    """The device in ``configs/devices/NAME.toml``; a ``name`` that ends in .toml is a file of the user's."""
    path = Path(name) if name.endswith(SUFFIX) else config_path("devices", name)
    if path.exists() and not path.is_file():
        raise MagnetonError(f"{path} is not a file", hint="name a TOML file with the device's coefficients")
    return read_config(path, DeviceFile).model()
