"""Arithmetic of shapes and axes that several type rules share."""

from functools import lru_cache

import numpy as np

from scalify.ir.mesh import RankInt
from scalify.ir.ops.spec import Call, mistake

Shape = tuple[int, ...]

MAX_ENUMERATED_RANKS = 4096


def broadcast(call: Call, *shapes: Shape) -> Shape:
    """The common shape under NumPy's rule: right-aligned, a 1 stretches."""
    result = shapes[0]
    for shape in shapes[1:]:
        if shape != result:
            result = _broadcast(call, result, shape)
    return result


def _broadcast(call: Call, first: Shape, second: Shape) -> Shape:
    rank = max(len(first), len(second))
    first = (1,) * (rank - len(first)) + first
    second = (1,) * (rank - len(second)) + second
    for size, other in zip(first, second, strict=True):
        if size != other and 1 not in (size, other):
            raise mistake(f"operands of {call.op} do not broadcast: {shown(first)} and {shown(second)}")
    return tuple(other if size == 1 else size for size, other in zip(first, second, strict=True))


def axis(call: Call, name: str, rank: int) -> int:
    """An axis attribute, in range."""
    value = call.integer(name)
    if not 0 <= value < rank:
        raise mistake(f"{name} {value} of {call.op} is out of range for {rank} dimensions")
    return value


def axes(call: Call, name: str, rank: int) -> tuple[int, ...]:
    """An attribute that lists axes: in range, each once."""
    values = call.integers(name)
    if any(not 0 <= value < rank for value in values):
        raise mistake(f"{name} {values} of {call.op} are out of range for {rank} dimensions")
    if len(set(values)) != len(values):
        raise mistake(f"{name} {values} of {call.op} name a dimension twice")
    return values


def reduced(shape: Shape, over: tuple[int, ...], *, keepdims: bool) -> Shape:
    """A shape without the reduced dimensions, or with a 1 in their place."""
    if keepdims:
        return tuple(1 if dim in over else size for dim, size in enumerate(shape))
    return tuple(size for dim, size in enumerate(shape) if dim not in over)


def per_dimension(call: Call, name: str, count: int) -> tuple[int, ...]:
    """An attribute with one int for every dimension."""
    values = call.integers(name)
    if len(values) != count:
        raise mistake(f"{name} {values} of {call.op} should have {count} entries")
    return values


def windowed(call: Call, sizes: Shape, windows: Shape, dilation: Shape) -> Shape:
    """How many positions a sliding window takes along each dimension."""
    count = len(sizes)
    strides = per_dimension(call, "strides", count)
    padding = call.pairs("padding")
    if len(padding) != count:
        raise mistake(f"padding {padding} of {call.op} should have {count} entries")
    if min((*strides, *dilation, *windows), default=1) < 1:
        raise mistake(f"strides, dilation and window of {call.op} should be at least 1")
    if any(low < 0 or high < 0 for low, high in padding):
        raise mistake(f"padding {padding} of {call.op} should not be negative")
    result: list[int] = []
    for size, window, stride, spread, (low, high) in zip(
        sizes, windows, strides, dilation, padding, strict=True
    ):
        room = size + low + high - (spread * (window - 1) + 1)
        if room < 0:
            raise mistake(f"the window of {call.op}, {window} by {spread}, does not fit into {size}")
        result.append(room // stride + 1)
    return tuple(result)


def difference(limit: int | RankInt, start: int | RankInt) -> int | None:
    """``limit - start`` where it is the same on every rank, else None."""
    if isinstance(limit, int) and isinstance(start, int):
        return limit - start
    if _canonical(limit) != _canonical(start):
        return None
    return _base(limit) - _base(start)


def _base(value: int | RankInt) -> int:
    return value.base if isinstance(value, RankInt) else value


def _canonical(value: int | RankInt) -> dict[tuple[int, int], int]:
    digits: dict[tuple[int, int], int] = {}
    for stride, size, factor in value.terms if isinstance(value, RankInt) else ():
        digits[stride, size] = digits.get((stride, size), 0) + factor
    return {digit: factor for digit, factor in digits.items() if factor}


def fits(value: int | RankInt, least: int, most: int, ranks: int) -> bool:
    """Whether a value lies in [least, most] on every rank.

    Digits are taken to be independent; where that is not enough, every rank is looked at, unless there are
    so many that a hostile graph could make this slow: then the answer may be False for a value that fits.
    """
    if not isinstance(value, RankInt):
        return least <= value <= most
    low = high = value.base
    for stride, size, factor in value.terms:
        reach = factor * min(size - 1, (ranks - 1) // stride)
        low, high = low + min(0, reach), high + max(0, reach)
    if least <= low and high <= most:
        return True
    if ranks > MAX_ENUMERATED_RANKS:
        return False
    exact_low, exact_high = _extent(value, ranks)
    return least <= exact_low and exact_high <= most


@lru_cache(maxsize=4096)
def _extent(value: RankInt, ranks: int) -> tuple[int, int]:
    numbers = np.arange(ranks, dtype=object if _may_overflow(value) else np.int64)
    total = numbers * 0 + value.base
    for stride, size, factor in value.terms:
        total = total + factor * (numbers // stride % size)
    return int(total.min()), int(total.max())


def _may_overflow(value: RankInt) -> bool:
    bound = abs(value.base) + sum(abs(factor) * size for _, size, factor in value.terms)
    return bound >= 2**62 or any(stride >= 2**62 for stride, _, _ in value.terms)


def shown(shape: Shape) -> str:
    """A shape as the text form has it."""
    return f"[{','.join(map(str, shape))}]"
