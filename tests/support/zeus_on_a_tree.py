"""The real package zeus with a RAPL of the test's own, called in a process that may be thrown away.

Zeus keeps what it found for the life of a process and has the folder of the counters in a constant, so both
are set anew for each scenario. Counters are plain files here: Zeus's helper processes read them as well.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.zeus import ZeusMeter
from magneton.meters.zeus_sensors import UNKNOWN_TO_ZEUS, ZEUSD, open_sensors

RANGE_UJ = 10**12
HIDING = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    *UNKNOWN_TO_ZEUS,
    *ZEUSD,
)


def plant(root: Path, zones: Mapping[str, str], energy_uj: int = 10**9) -> None:
    """Zones by path ("intel-rapl:0/intel-rapl:0:0") with their names, where Zeus looks for them."""
    for zone, name in zones.items():
        folder = root / "intel-rapl" / zone
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
        (folder / "energy_uj").write_text(f"{energy_uj}\n")


def spend(root: Path, zone: str, energy_j: float) -> None:
    file = root / "intel-rapl" / zone / "energy_uj"
    file.write_text(f"{int(file.read_text()) + round(energy_j * 1e6)}\n")


@contextmanager
def zeus_meter(
    root: Path,
    device: str,
    *,
    clock: Any = None,
    variables: Mapping[str, str] | None = None,
    chip: Any = None,
) -> Generator[ZeusMeter]:
    """Open on ``root``, the boards of this process and ``chip``, with nothing left of earlier scenarios."""
    _forget()
    soc: Any = import_module("zeus.device.soc")
    soc._soc = chip
    rapl: Any = import_module("zeus.device.cpu.rapl")
    rapl.RAPL_DIR = rapl.CONTAINER_RAPL_DIR = str(root / "intel-rapl")
    for name in HIDING:
        os.environ.pop(name, None)
    os.environ.update(variables or {})
    meter = ZeusMeter(open_sensors(device), clock=clock)
    try:
        yield meter
    finally:
        meter.close()


def refusal(root: Path, device: str, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """How opening is refused."""
    try:
        with zeus_meter(root, device, variables=variables):
            return {"kind": "opened"}
    except (SensorAbsent, SensorUnusable) as error:
        return {"kind": type(error).__name__, "text": str(error), "hint": error.hint}


def _forget() -> None:
    for module, kept in (("gpu", "_gpus"), ("cpu", "_cpus"), ("soc", "_soc")):
        setattr(import_module(f"zeus.device.{module}"), kept, None)
    for module, function in (
        ("gpu.nvidia", "nvml_is_available"),
        ("gpu.amd", "amdsmi_is_available"),
        ("cpu.rapl", "rapl_is_available"),
    ):
        getattr(import_module(f"zeus.device.{module}"), function).cache_clear()
