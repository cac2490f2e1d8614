"""Energy coefficients of devices (``configs/devices``): each with its range and where it comes from."""

from dataclasses import dataclass

from magneton.configs import config_path, read_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A figure taken from elsewhere, and the range in which the truth lies for the machine at hand."""

    value: float
    low: float
    high: float
    source: str

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.value <= self.high < float("inf"):
            raise ValueError(f"need 0 < low <= value <= high, not {self.low}, {self.value}, {self.high}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What the modelled meter knows about a kind of device."""

    name: str
    core_power_w: Coefficient  # of one busy core, with its share of the package


def read_device(name: str) -> Device:
    """The device file ``configs/devices/NAME.toml``."""
    return read_config(config_path("devices", name), Device)
