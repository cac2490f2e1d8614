"""Figures for people: three significant digits, a unit that fits, the interval beside the value."""

import math
from collections.abc import Sequence

from magneton.profile.origin import Unit
from magneton.quantity import Quantity

DIGITS = 3
WIDE = 0.25  # of the value; beyond, the ends of an interval say more than its half width
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def _scale(magnitude: float, unit: str) -> tuple[float, str]:
    """The factor and prefixed unit in which ``magnitude`` is read most easily."""
    if unit == "operators":
        return 1.0, "ops"
    if magnitude == 0 or not math.isfinite(magnitude):
        return 1.0, unit
    steps: Sequence[tuple[float, str]] = _PREFIXES[-1:] if unit == "s" else _PREFIXES
    if unit in ("J", "s"):
        steps = (*steps, *_SMALL)
    for factor, prefix in steps:
        if magnitude >= factor * 0.9995:  # 999.96 mJ reads as 1.00 J
            return factor, prefix + unit
    factor, prefix = steps[-1]
    return factor, prefix + unit


def _decimals(magnitude: float) -> int:
    """How many decimals leave ``DIGITS`` significant digits, after rounding."""
    if magnitude == 0 or not math.isfinite(magnitude):
        return 0
    exponent = int(f"{magnitude:.{DIGITS - 1}e}".partition("e")[2])
    return min(max(DIGITS - 1 - exponent, 0), DIGITS + 2)


def figure(value: float | None, unit: Unit | str) -> str:
    """``0.00123, "J"`` as ``1.23 mJ``; ``-`` where nothing was measured."""
    if value is None:
        return "-"
    factor, name = _scale(abs(value), unit)
    scaled = value / factor
    if abs(scaled) >= 1e6:
        return f"{scaled:.3g} {name}"
    whole = unit not in ("J", "s") and factor == 1.0 and scaled == round(scaled)
    return f"{scaled:.{0 if whole else _decimals(abs(scaled))}f} {name}"


def signed(difference: float | None, unit: Unit | str) -> str:
    """``+1.23 mJ``: a difference says its sign."""
    text = figure(difference, unit)
    return f"+{text}" if difference is not None and difference > 0 else text


def quantity(measured: Quantity | None, unit: Unit | str) -> str:
    """``1.23 ± 0.05 mJ``; ``1.2 [0.6, 2.5] mJ`` where the interval is wide; ``(one reading)`` without one."""
    if measured is None:
        return "-"
    if measured.low == measured.high:
        return figure(measured.value, unit)
    spread = max(measured.high - measured.value, measured.value - measured.low)
    if not math.isfinite(spread):
        return f"{figure(measured.value, unit)} (one reading)"
    factor, name = _scale(max(abs(measured.value), spread), unit)
    decimals = _decimals(max(abs(measured.value), spread) / factor)
    if spread > WIDE * abs(measured.value):
        ends = ", ".join(_two_digits(end / factor) for end in (measured.low, measured.high))
        return f"{measured.value / factor:.{decimals}f} [{ends}] {name}"
    return f"{measured.value / factor:.{decimals}f} ± {spread / factor:.{decimals}f} {name}"


def _two_digits(number: float) -> str:
    return f"{float(f'{number:.1e}'):g}"


def ratio(measured: Quantity | None) -> str:
    """``1.82x [1.75, 1.90]``."""
    if measured is None:
        return "-"
    if measured.low == measured.high:
        return f"{measured.value:.3g}x"
    if not math.isfinite(measured.high - measured.low):
        return f"{measured.value:.2f}x [one reading]"
    return f"{measured.value:.2f}x [{measured.low:.2f}, {measured.high:.2f}]"


def percent(share: float | None) -> str:
    """``0.1234`` as ``12.3 %``."""
    if share is None:
        return "-"
    magnitude = abs(share * 100)
    return f"{share * 100:.{0 if magnitude >= 99.95 else 1 if magnitude >= 0.995 else 2}f} %"
