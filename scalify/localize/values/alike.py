"""Whether numbers are the same but for rounding, or all the same multiple of each other."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from scalify.ir.ops.spec import Array

CLOSE = 1e-9
FEW = 3
LARGEST_DENOMINATOR = 1024


def tolerance(given: Array) -> float:
    """How far numbers beside those of ``given`` may be apart: most are about as large as their median, and a
    mask's huge ones say nothing of the others."""
    if given.dtype.kind not in "fc":
        return 0.0
    sizes = np.abs(given[np.isfinite(given)])
    sizes = sizes[sizes > 0]
    return CLOSE * float(np.median(sizes)) if sizes.size else CLOSE


def same(own: Sequence[Array], given: Sequence[Array], slack: float) -> bool:
    """Whether each array is the other, element by element; the first few decide most cases."""
    pairs = {
        (id(one), other.__array_interface__["data"][0]): (one, other)
        for one, other in zip(own, given, strict=True)
    }
    return all(_same(_few(one), _few(other), slack) for one, other in pairs.values()) and all(
        _same(one, other, slack) for one, other in pairs.values()
    )


def ratio(own: Sequence[Array], given: Sequence[Array], slack: float) -> Fraction | float | None:
    """The one factor between two values, other than 0 and 1: a fraction, where it is one."""
    if not given[0].size or any(each.dtype.kind != "f" for each in (*own, *given)):
        return None
    place = _largest(given[0])
    if place is None:
        return None
    with np.errstate(all="ignore"):
        factor = float(own[0][place] / given[0][place])
    if not np.isfinite(factor) or factor == 0 or abs(factor - 1) < CLOSE:
        return None
    near = Fraction(factor).limit_denominator(LARGEST_DENOMINATOR)
    simple = near != 0 and abs(float(near) - factor) <= CLOSE * abs(factor)
    if own[0].size == 1 and not (simple and 1 in (near.numerator, near.denominator)):
        return None  # there is a factor between any two numbers
    factor = float(near) if simple else factor
    if not same(own, [factor * each for each in given], slack * abs(factor)):
        return None
    return near if simple else factor


def offset(own: Sequence[Array], given: Sequence[Array], slack: float) -> float | None:
    """The one number by which values differ."""
    if not given[0].size or any(each.dtype.kind not in "fi" for each in (*own, *given)):
        return None
    with np.errstate(all="ignore"):
        apart = [one - other for one, other in zip(own, given, strict=True)]
    number = float(apart[0].flat[0])
    steady = np.isfinite(number) and number != 0
    return number if steady and same(apart, [np.full_like(each, number) for each in apart], slack) else None


def _few(array: Array) -> Array:
    return array[tuple(slice(0, FEW) for _ in array.shape)] if array.size > FEW else array


def _same(one: Array, other: Array, slack: float) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc" and other.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    with np.errstate(all="ignore"):
        near = (np.abs(one - other) <= slack + CLOSE * np.abs(other)) & np.isfinite(other)
    if near.all():
        return True
    return bool((near | (one == other) | (np.isnan(one) & np.isnan(other))).all())


def _largest(array: Array) -> tuple[int, ...] | None:
    sizes = np.where(np.isfinite(array) & (np.abs(array) < 1e30), np.abs(array), 0.0)
    place = np.unravel_index(int(sizes.argmax()), array.shape)
    return tuple(int(each) for each in place) if sizes[place] > 0 else None
