"""Machines for ``magneton doctor`` to look at, made of files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from powercap_tree import TurnedClock

from magneton.doctor import Check, Diagnosis, Surroundings
from magneton.meters.sensors import SensorAbsent

INSTALLED = {"torch": "2.13.0", "transformers": "5.24.0", "zeus": "0.16.0"}


def no_nvml() -> Any:
    raise SensorAbsent("the package nvidia-ml-py is not installed", hint="pip install nvidia-ml-py")


def bare_machine(folder: Path, versions: Mapping[str, str] = INSTALLED, **changes: Any) -> Surroundings:
    """One without sensors, whose files are in ``folder``."""
    cpuinfo = folder / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: A Processor @ 2 GHz\n")
    found: dict[str, Any] = {
        "nvml": no_nvml,
        "powercap": folder / "powercap",
        "devices": folder / "dev",
        "cpuinfo": cpuinfo,
        "jetson": folder / "nv_tegra_release",
        "operating_system": ("linux", "x86_64"),
        "environment": {},
        "version": versions.get,
        "cache": lambda: folder / "cache" / "magneton",
        "load_1min": lambda: 0.0,
        "clock": TurnedClock(),
    }
    return Surroundings(**(found | changes))


def sensor(diagnosis: Diagnosis, name: str) -> Check:
    (found,) = (check for check in diagnosis.sensors if check.name == name)
    return found


def place(diagnosis: Diagnosis, name: str) -> Check:
    (found,) = (check for check in diagnosis.machine if check.name == name)
    return found
