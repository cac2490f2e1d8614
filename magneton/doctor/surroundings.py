"""Where a machine is looked at. Tests put files and fakes in its place."""

import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from magneton.cache import cache_folder
from magneton.meters.board import load_nvml
from magneton.meters.clock import Clock, SystemClock
from magneton.meters.meter import Meter
from magneton.meters.powercap import POWERCAP, read_beginning
from magneton.meters.powercap import Read as ReadFile
from magneton.meters.zeus import ZeusMeter
from magneton.processor import CPUINFO
from magneton.system import installed_version


def load_1min() -> float | None:
    """Runnable processes, averaged over the last minute; None on a system that does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def silence(text: str) -> None:
    """For callers that show nothing."""
    del text


def open_zeus(device: str) -> Meter:
    """Imports Zeus, which takes seconds: only where it could see what nothing else does."""
    return ZeusMeter.open("", device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """``say`` is told what takes seconds, before it does."""

    nvml: Callable[[], Any] = load_nvml
    powercap: Path = POWERCAP
    read_file: ReadFile = read_beginning
    devices: Path = Path("/dev")
    cpuinfo: Path = CPUINFO
    jetson: Path = Path("/etc/nv_tegra_release")
    operating_system: tuple[str, str] = field(default_factory=lambda: (sys.platform, platform.machine()))
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    version: Callable[[str], str | None] = installed_version
    open_zeus: Callable[[str], Meter] = open_zeus
    cache: Callable[[], Path] = cache_folder
    load_1min: Callable[[], float | None] = load_1min
    clock: Clock = field(default_factory=SystemClock)
    say: Callable[[str], None] = silence
