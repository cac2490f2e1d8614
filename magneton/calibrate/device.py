"""From fitted terms and measured rates to a ``DeviceModel``, with a shipped device for what is missing.

The parts have to hold together: power is never held below what was seen, and a byte from the cache costs no
more than one from memory. Where a coefficient was moved for that, its source says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import median
from typing import Literal

from magneton.calibrate.fit import Fit, Fitted, NotIdentifiable, Observation
from magneton.calibrate.plan import WIDTH_BYTES
from magneton.calibrate.workbench import (
    CACHE,
    CONSTANT,
    LAUNCH,
    MEMORY,
    ZEROS,
    Benchmark,
    DeviceFacts,
    energy_term,
    rate_term,
)
from magneton.profile.device import Arithmetic, ArithmeticUnit, Coefficient, DeviceModel, UnitKind

Origin = Literal["fitted", "measured", "driver", "shipped"]

BANDWIDTH, KERNEL = "memory_bytes_per_s", "shortest_kernel_s"
NOT_RUN = "nothing was run for it"
_KINDS: tuple[UnitKind, ...] = ("vector", "matrix")
TDP, CACHE_SIZE = "tdp_w", "cache_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rate or a duration by the benchmark that did best: the median of its windows and their extremes."""

    value: float
    low: float
    high: float
    benchmark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A coefficient of the new device, where it comes from, and why it is not fitted where it is not."""

    name: str
    coefficient: Coefficient
    origin: Origin
    doubt: str = ""


def fitted_rates(observations: Sequence[Observation], benchmarks: Sequence[Benchmark]) -> Mapping[str, Rate]:
    """Bandwidth, peaks and the shortest kernel, by the names that they have in a ``DeviceModel``."""
    found: dict[str, Rate] = {}
    for benchmark in benchmarks:
        windows = [each for each in observations if each.benchmark == benchmark.name]
        rated = _rated(benchmark)
        if not windows or rated is None:
            continue
        name, term = rated
        rates = [each.amounts[term] / each.duration_s for each in windows]
        rate = Rate(value=median(rates), low=min(rates), high=max(rates), benchmark=benchmark.name)
        if name not in found or rate.value > found[name].value:
            found[name] = rate
    if KERNEL in found:
        launches = found[KERNEL]
        found[KERNEL] = Rate(
            value=1 / launches.value,
            low=1 / launches.high,
            high=1 / launches.low,
            benchmark=launches.benchmark,
        )
    return found


def device_of(
    facts: DeviceFacts,
    fitted: Fit,
    rates: Mapping[str, Rate],
    nearest: tuple[str, DeviceModel],
    *,
    highest_w: float,
    fitted_by: str,
) -> tuple[DeviceModel, tuple[Row, ...]]:
    """The new device, and its coefficients one by one."""
    parts = _Parts(fitted=fitted, rates=rates, shipped_name=nearest[0], shipped=nearest[1], by=fitted_by)
    constant = parts.energy(CONSTANT)
    tdp = parts.at_least(TDP, highest_w)
    if constant.coefficient.value >= tdp.coefficient.value:
        raise NotIdentifiable(
            "the device never drew more than its constant power", hint="does the meter read this device?"
        )
    memory = parts.energy(MEMORY)
    rows = [constant, tdp, parts.rate(KERNEL), parts.rate(BANDWIDTH), memory, parts.cache_size(facts)]
    rows.append(_no_more_than(parts.energy(CACHE), memory))
    for kind, arithmetic in parts.units():
        rows += [parts.rate(rate_term(kind, arithmetic)), parts.energy(energy_term(kind, arithmetic))]
    return _assembled(f"{facts.name}, calibrated", rows, parts.units()), tuple(rows)


def _assembled(name: str, rows: Sequence[Row], units: Sequence[tuple[UnitKind, Arithmetic]]) -> DeviceModel:
    found = {row.name: row.coefficient for row in rows}
    return DeviceModel(
        name=name,
        constant_power_w=found[CONSTANT],
        tdp_w=found[TDP],
        shortest_kernel_s=found[KERNEL],
        memory_bytes_per_s=found[BANDWIDTH],
        memory_j_per_byte=found[MEMORY],
        cache_bytes=found[CACHE_SIZE],
        cache_j_per_byte=found[CACHE],
        units=tuple(
            ArithmeticUnit(
                kind=kind,
                arithmetic=arithmetic,
                flop_per_s=found[rate_term(kind, arithmetic)],
                j_per_flop=found[energy_term(kind, arithmetic)],
            )
            for kind, arithmetic in units
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Where coefficients are taken from."""

    fitted: Fit
    rates: Mapping[str, Rate]
    shipped_name: str
    shipped: DeviceModel
    by: str

    def units(self) -> tuple[tuple[UnitKind, Arithmetic], ...]:
        """Those of the shipped device, and those that were fitted besides."""
        found: dict[tuple[UnitKind, Arithmetic], None] = {}
        for unit in self.shipped.units:
            found[unit.kind, unit.arithmetic] = None
        for kind, arithmetic in product(_KINDS, WIDTH_BYTES):
            if self._is_fitted(energy_term(kind, arithmetic)):
                found[kind, arithmetic] = None
        return tuple(found)

    def energy(self, term: str) -> Row:
        """Fitted if the readings determine it."""
        if not self._is_fitted(term):
            found = self.fitted.terms.get(term)
            return self._from_shipped(term, NOT_RUN if found is None else found.doubt)
        found = self.fitted.terms[term]
        source = f"fitted on {self.by}, from {found.readings} windows{self._on_zeros(found)}"
        return Row(name=term, coefficient=_coefficient(found, source), origin="fitted")

    def rate(self, name: str) -> Row:
        rate = self.rates.get(name)
        if rate is None:
            return self._from_shipped(name, NOT_RUN)
        source = f"measured on {self.by}: {rate.benchmark!r}"
        return Row(name=name, coefficient=_coefficient(rate, source), origin="measured")

    def at_least(self, name: str, seen: float) -> Row:
        """The shipped figure, unless more was seen."""
        row = self._from_shipped(name, "a limit cannot be measured")
        theirs = row.coefficient
        if theirs.value >= seen:
            return row
        source = f"{seen:.4g} W was seen on {self.by}; {theirs.source}"
        more = Coefficient(value=seen, low=seen, high=max(theirs.high, seen), source=source)
        return replace(row, coefficient=more, origin="measured")

    def cache_size(self, facts: DeviceFacts) -> Row:
        if facts.cache_bytes is None:
            return self._from_shipped(CACHE_SIZE, "the driver does not tell it")
        source = f"as the driver of {facts.name} tells it; half where two parts hold copies of each other"
        size = Coefficient(
            value=facts.cache_bytes, low=facts.cache_bytes / 2, high=facts.cache_bytes, source=source
        )
        return Row(name=CACHE_SIZE, coefficient=size, origin="driver")

    def _on_zeros(self, found: Fitted) -> str:
        """Bits that never change cost less: how much of a coefficient depends on the data."""
        zeros = self.fitted.terms.get(found.term + ZEROS)
        if zeros is None or not zeros.determined:
            return ""
        return f"; operands that are all zero cost {zeros.value / found.value:.0%} of it"

    def _is_fitted(self, term: str) -> bool:
        return term in self.fitted.terms and self.fitted.terms[term].determined

    def _from_shipped(self, name: str, doubt: str) -> Row:
        theirs = dict(self.shipped.coefficients())[name]
        source = f"not fitted ({doubt}): that of {self.shipped_name}; {theirs.source}"
        return Row(name=name, coefficient=replace(theirs, source=source), origin="shipped", doubt=doubt)


def _rated(benchmark: Benchmark) -> tuple[str, str] | None:
    """Which rate a benchmark is run for, and in which of its amounts it is counted."""
    if benchmark.work == "launch":
        return KERNEL, LAUNCH
    if benchmark.work in ("sum", "copy") and MEMORY in benchmark.amounts:
        return BANDWIDTH, MEMORY
    flop_terms = [term for term in benchmark.amounts if term.endswith("j_per_flop")]
    if benchmark.work in ("matmul", "chain") and flop_terms:
        return flop_terms[0].replace("j_per_flop", "flop_per_s"), flop_terms[0]
    return None


def _coefficient(found: Fitted | Rate, source: str) -> Coefficient:
    return Coefficient(value=found.value, low=found.low, high=found.high, source=source)


def _no_more_than(cache: Row, memory: Row) -> Row:
    """The way from the cache is part of the way from memory."""
    most, ours = memory.coefficient.value, cache.coefficient
    if ours.value <= most:
        return cache
    source = f"held at the cost of a byte from memory, above which it came out; {ours.source}"
    held = Coefficient(value=most, low=min(ours.low, most), high=max(ours.high, most), source=source)
    return replace(cache, coefficient=held)
