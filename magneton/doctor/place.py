"""The machine itself: its processor, how busy it is, where things are kept, what is installed."""

import os
import shutil
from pathlib import Path

from magneton.doctor.model import Check
from magneton.doctor.surroundings import Surroundings
from magneton.processor import processor_name

ROOMY_BYTES = 2_000_000_000  # a small model, its recordings, and one environment of a system
BUSY = 0.5  # runnable processes per core
PACKAGES = ("torch", "transformers", "zeus")


def look_at_machine(around: Surroundings) -> tuple[Check, ...]:
    return _processor(around.cpuinfo), _load(around.load_1min()), _cache(around.cache())


def look_at_packages(around: Surroundings) -> tuple[Check, ...]:
    return tuple(_package(name, around.version(name)) for name in PACKAGES)


def is_busy(runnable: float | None) -> bool:
    return runnable is not None and runnable > BUSY * (os.cpu_count() or 1)


def _processor(cpuinfo: Path) -> Check:
    cores = os.cpu_count() or 1
    return Check(name="processor", state="ok", detail=f"{processor_name(cpuinfo)}, {cores} cores")


def _load(runnable: float | None) -> Check:
    if runnable is None:
        return Check(name="load", state="absent", detail="this system tells no load")
    advice = "other work disturbs: compare sides measured alternately, and trust no wall-clock time"
    return Check(
        name="load",
        state="ok",
        detail=f"{runnable:.2f} runnable processes over the last minute",
        advice=advice if is_busy(runnable) else "",
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
    advice = "make room, or set MAGNETON_CACHE to a folder on another disk"
    return Check(
        name="cache",
        state="ok",
        detail=f"{folder}, {free_bytes / 1e9:.1f} GB free",
        advice="" if free_bytes >= ROOMY_BYTES else advice,
    )


def _package(name: str, found: str | None) -> Check:
    if found is None:
        return Check(name=name, state="absent", detail="not installed")
    return Check(name=name, state="ok", detail=found)
