"""Which floating-point format holds every number of another one."""

from collections.abc import Mapping

from scalify.ir.graph import DType
from scalify.ir.ops.dtypes import KIND_OF

# Bits of fraction, bits of exponent.
_BITS: Mapping[DType, tuple[int, int]] = {
    "f64": (52, 11),
    "f32": (23, 8),
    "f16": (10, 5),
    "bf16": (7, 8),
    "f8e4m3": (3, 4),
    "f8e5m2": (2, 5),
    "c128": (52, 11),
    "c64": (23, 8),
}


def is_rounding(dtype: DType) -> bool:
    """Whether numbers are rounded in it: whole numbers and truth values are taken as exact."""
    return KIND_OF[dtype] in ("float", "complex")


def loses(found: DType, expected: DType) -> bool:
    """Whether there are numbers of ``expected`` that ``found`` cannot hold: too fine, or too large."""
    if not (is_rounding(found) and is_rounding(expected)):
        return False
    (fraction, exponent), (wanted_fraction, wanted_exponent) = _BITS[found], _BITS[expected]
    return fraction < wanted_fraction or exponent < wanted_exponent


def coarser(one: DType | None, other: DType | None) -> DType | None:
    """The one with fewer bits of fraction; of two with equally many, the narrower. None is exact."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda dtype: _BITS[dtype])
