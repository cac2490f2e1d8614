"""What ``CUDA_VISIBLE_DEVICES`` selects: the framework's names of boards, and which of them it hides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magneton.doctor.model import Check
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.visible import board_indices

NAME = "cuda devices"
VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """``hidden`` are NVML's indices; where it cannot be told which boards are meant, none is."""

    check: Check
    hidden: frozenset[int]


def selected(nvml: Any, environment: Mapping[str, str], count: int) -> Selection:
    """The boards that a framework in this environment would see, of ``count``."""
    value = environment.get(VARIABLE)
    setting = f"{VARIABLE} is not set" if value is None else f"{VARIABLE}={value}"
    every = frozenset(range(count))
    try:
        seen = _seen(nvml, environment, count)
    except SensorAbsent as error:
        check = Check(name=NAME, state="absent", detail=f"{setting}: {error}", advice=error.hint)
        return Selection(check=check, hidden=every)
    except SensorUnusable as error:
        check = Check(name=NAME, state="unusable", detail=f"{setting}: {error}", advice=error.hint)
        return Selection(check=check, hidden=frozenset())
    names = ", ".join(f"{name} is board {index}" for name, index in seen.items())
    check = Check(name=NAME, state="ok", detail=f"{setting}: {names}")
    return Selection(check=check, hidden=every - set(seen.values()))


def _seen(nvml: Any, environment: Mapping[str, str], count: int) -> Mapping[str, int]:
    """NVML's index by the framework's name of a board. Raises what hides the first of them."""
    (first,) = board_indices(nvml, "cuda:0", environment)
    seen = {"cuda:0": first}
    for ordinal in range(1, count):
        try:
            (seen[f"cuda:{ordinal}"],) = board_indices(nvml, f"cuda:{ordinal}", environment)
        except (SensorAbsent, SensorUnusable):  # it hides itself and all after it
            break
    return seen
