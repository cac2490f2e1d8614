"""Which real number a constant of a program stands for.

Programs write reals as floats: ``0.1``, ``1 / 3``, ``64 ** -0.5``. A float next to a fraction with a small
denominator is read as that fraction; any other by its first fourteen digits, since two ways of computing one
constant differ in the last ones. Square and fourth roots of fractions are kept as such, so that halves of a
scale multiply to the whole. The lowest number of a float type is what masks are filled with; it is read as
minus infinity, which is an assumption that a verdict prints.
"""

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import isfinite, isnan, ulp

LOWEST = frozenset(
    {
        -65504.0,  # f16
        -3.3895313892515355e38,  # bf16
        -3.4028234663852886e38,  # f32
        -1.7976931348623157e308,  # f64
    }
)

LARGEST_DENOMINATOR = 10**6
DIGITS = Context(prec=14)

LARGEST_UNDER_ROOT = 10**4
ROOT_ULPS = 4

LOWEST_ASSUMED = "the lowest number of a float type, as masks hold it, stands for minus infinity"


@lru_cache(maxsize=4096)
def real(value: float) -> Fraction | str:
    """The number, or the name of one that is none: inf, -inf, nan."""
    if isnan(value):
        return "nan"
    if value in LOWEST or not isfinite(value):
        return "inf" if value > 0 else "-inf"
    exact = Fraction(value)
    simple = exact.limit_denominator(LARGEST_DENOMINATOR)
    if abs(simple - exact) <= Fraction(ulp(float(value))):
        return simple
    return Fraction(DIGITS.create_decimal(Decimal(value)))


@lru_cache(maxsize=4096)
def root(value: float) -> tuple[int, Fraction] | None:
    """Of which fraction a number is the square root (2) or the fourth root (4), if of a simple one."""
    if (
        not isfinite(value)
        or value <= 0
        or real(value) == Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    ):
        return None
    for degree in (2, 4):
        power = Fraction(value) ** degree
        simple = power.limit_denominator(LARGEST_UNDER_ROOT)
        if simple and abs(power / simple - 1) <= Fraction(degree * ROOT_ULPS, 2**53):
            return degree, simple
    return None
