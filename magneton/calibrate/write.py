"""A calibration as a device file, and readings as JSON.

The file has the format of ``configs/devices``: figures in the units of data sheets, each with its range and
its source. Figures keep six digits.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from magneton.calibrate.calibration import Calibration, Readings
from magneton.profile.device import Coefficient
from magneton.profile.output import reserve
from magneton.report.escape import visible
from magneton.report.json import document

READINGS_SCHEMA = "magneton-calibration-readings"
READINGS_VERSION = 1
ROOM_BYTES = 256 * 1024
_LONGEST = 2000  # characters of a text


def device_file(calibration: Calibration) -> bytes:
    """The text of ``NAME.toml``, which ``--meter modelled:NAME.toml`` reads."""
    return "\n".join(_lines(calibration)).encode()


def readings_path(output: Path) -> Path:
    """Where readings are kept if no device file comes of them."""
    return output.with_suffix(".readings.json")


def keep_readings(readings: Readings, output: Path) -> Path:
    """Write them beside ``output``; either the whole file is there or none."""
    path = readings_path(output)
    with reserve(path, room_bytes=0) as place:
        place.write(document(READINGS_SCHEMA, READINGS_VERSION, readings).encode())
    return path


def _lines(calibration: Calibration) -> Iterator[str]:
    device = calibration.device
    error = f"median {calibration.median_error:.1%}, worst {calibration.worst_error:+.1%}"
    yield f"# Written by magneton calibrate on {calibration.calibrated_at}, seed {calibration.seed}."
    yield f"# The model's error on its own measurements: {error}."
    yield f"name = {_text(device.name)}"
    yield from _table("constant_power_w", device.constant_power_w, 1)
    yield from _table("tdp_w", device.tdp_w, 1)
    yield from _table("shortest_kernel_us", device.shortest_kernel_s, 1e6)
    yield from _table("memory_gb_per_s", device.memory_bytes_per_s, 1e-9)
    yield from _table("memory_pj_per_byte", device.memory_j_per_byte, 1e12)
    yield from _table("cache_mb", device.cache_bytes, 1e-6)
    yield from _table("cache_pj_per_byte", device.cache_j_per_byte, 1e12)
    for unit in device.units:
        yield from ("", "[[units]]", f"kind = {_text(unit.kind)}", f"arithmetic = {_text(unit.arithmetic)}")
        yield from _table("units.peak_tflop_per_s", unit.flop_per_s, 1e-12)
        yield from _table("units.energy_pj_per_flop", unit.j_per_flop, 1e12)
    yield ""


def _table(name: str, coefficient: Coefficient, factor: float) -> Iterator[str]:
    yield from ("", f"[{name}]")
    for key in ("value", "low", "high"):
        yield f"{key} = {float(f'{getattr(coefficient, key) * factor:.6g}')!r}"
    yield f"source = {_text(coefficient.source)}"


def _text(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, and what JSON would leave raw is written out before."""
    return json.dumps(visible(text, longest=_LONGEST), ensure_ascii=False)
