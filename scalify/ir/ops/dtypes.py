"""Element types: their kinds, and which one a mixture of them gives."""

from collections.abc import Iterable
from typing import Literal, get_args

from scalify.ir.graph import DType

DKind = Literal["bool", "int", "float", "complex"]

DTYPES: tuple[DType, ...] = get_args(DType)

_KINDS: tuple[DKind, ...] = ("bool", "int", "float", "complex")
_KIND_OF_LETTER: dict[str, DKind] = {"i": "int", "u": "int", "f": "float", "b": "float", "c": "complex"}
KIND_OF: dict[DType, DKind] = {
    dtype: "bool" if dtype == "bool" else _KIND_OF_LETTER[dtype[0]] for dtype in DTYPES
}
# Later wins among floats and among integers; two that share a place give the next one up.
_PLACE: dict[DType, int] = {
    "f8e4m3": 0, "f8e5m2": 0, "f16": 2, "bf16": 2, "f32": 4, "f64": 6,
    "bool": 0, "u8": 1, "i8": 1, "u16": 3, "i16": 3, "u32": 5, "i32": 5, "u64": 7, "i64": 7,
    "c64": 0, "c128": 1,
}  # fmt: skip
_NEXT_UP: dict[int, DType] = {0: "f16", 2: "f32"}
_SIGNED_ABOVE: dict[int, DType] = {1: "i16", 3: "i32", 5: "i64", 7: "i64"}
INTEGER_BITS: dict[DType, int] = {
    dtype: int(dtype[1:]) for dtype in DTYPES if KIND_OF[dtype] == "int"
}  # fmt: skip


def widest_kind(dtypes: Iterable[DType]) -> DKind:
    """The kind that a mixture has: bool < int < float < complex."""
    return _KINDS[max(_KINDS.index(KIND_OF[dtype]) for dtype in dtypes)]


def promote(first: DType, *others: DType) -> DType:
    """The dtype of an elementwise result. Front ends may declare another of the same kind."""
    result = first
    for dtype in others:
        if dtype != result:
            result = _promote(result, dtype)
    return result


def _promote(first: DType, second: DType) -> DType:
    kind = widest_kind((first, second))
    if kind == "complex":
        return "c128" if {"c128", "f64"} & {first, second} else "c64"
    if KIND_OF[first] != KIND_OF[second]:
        return first if KIND_OF[first] == kind else second
    if _PLACE[first] != _PLACE[second]:
        return first if _PLACE[first] > _PLACE[second] else second
    return _NEXT_UP[_PLACE[first]] if kind == "float" else _SIGNED_ABOVE[_PLACE[first]]


def as_float(dtype: DType) -> DType:
    """The dtype of a function into the reals: f32 for an integer or bool, as PyTorch has it."""
    return "f32" if KIND_OF[dtype] in ("int", "bool") else dtype


def as_number(dtype: DType) -> DType:
    """The dtype of a sum: bools are counted."""
    return "i64" if dtype == "bool" else dtype
