"""What a device is made of as far as a model of its energy goes: coefficients, each with its range.

A profile that was recorded for a device holds all of them, so that its joules can be computed anywhere and
later, and compared with another recording for the same device.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

LEAST, MOST = 1e-30, 1e30  # of any coefficient: sums over the largest profile stay numbers

UnitKind = Literal["vector", "matrix"]
Arithmetic = Literal["float64", "float32", "tf32", "bfloat16", "float16", "float8", "int8"]


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

    def times(self, factor: float) -> "Coefficient":
        """The same figure in a unit that is ``factor`` times finer."""
        return Coefficient(
            value=self.value * factor, low=self.low * factor, high=self.high * factor, source=self.source
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticUnit:
    """Hardware that computes in one format: elementwise ("vector") or contractions only ("matrix")."""

    kind: UnitKind
    arithmetic: Arithmetic
    flop_per_s: Coefficient  # the most it does
    j_per_flop: Coefficient

    def name(self) -> str:
        return f"{self.kind} {self.arithmetic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceModel:
    """Power that is always drawn, time by the roofline, and energy per operation and per byte."""

    name: str  # "NVIDIA H200 SXM"
    constant_power_w: Coefficient
    tdp_w: Coefficient  # power is held below it
    shortest_kernel_s: Coefficient  # no operator that launches something takes less
    memory_bytes_per_s: Coefficient
    memory_j_per_byte: Coefficient  # the whole path from memory to where it is computed
    cache_bytes: Coefficient  # of the last level
    cache_j_per_byte: Coefficient  # the path from there
    units: tuple[ArithmeticUnit, ...]

    def __post_init__(self) -> None:
        known = [(unit.kind, unit.arithmetic) for unit in self.units]
        twice = next((one for one in known if known.count(one) > 1), None)
        if twice is not None:
            raise ValueError(f"the unit {' '.join(twice)!r} is given twice")
        if ("vector", "float32") not in known:
            raise ValueError("a device needs the unit 'vector float32', which computes what no other does")
        if self.constant_power_w.value >= self.tdp_w.value:
            raise ValueError("constant_power_w lies at or above tdp_w, so nothing is left to compute with")
        if self.cache_j_per_byte.value > self.memory_j_per_byte.value:
            raise ValueError("cache_j_per_byte lies above memory_j_per_byte, whose path is the longer one")
        for name, coefficient in self.coefficients():
            if not LEAST <= coefficient.low <= coefficient.high <= MOST:
                raise ValueError(f"{name} lies beyond {LEAST:g} to {MOST:g}")

    def coefficients(self) -> Iterator[tuple[str, Coefficient]]:
        """All of them, by name."""
        yield "constant_power_w", self.constant_power_w
        yield "tdp_w", self.tdp_w
        yield "shortest_kernel_s", self.shortest_kernel_s
        yield "memory_bytes_per_s", self.memory_bytes_per_s
        yield "memory_j_per_byte", self.memory_j_per_byte
        yield "cache_bytes", self.cache_bytes
        yield "cache_j_per_byte", self.cache_j_per_byte
        for unit in self.units:
            yield f"{unit.name()} flop_per_s", unit.flop_per_s
            yield f"{unit.name()} j_per_flop", unit.j_per_flop

    def digest(self) -> str:
        """Equal where all figures are; sources and the device's name do not count."""
        figures = sorted((name, each.low, each.value, each.high) for name, each in self.coefficients())
        return hashlib.sha256(repr(figures).encode()).hexdigest()[:12]
