"""Digits of the rank's number: which ranks a collective joins, as positions in mixed radix."""

import itertools

from scalify.ir.mesh import Groups
from scalify.layout.views import RankDigits


def digits_of(groups: Groups) -> RankDigits | None:
    """The digits that vary inside the groups, lowest first; None where groups are not cosets of digits.

    Ranks in a group must stand in increasing order: a gather over ranks in another order is another map.
    """
    first = min(groups, key=lambda group: group[0])
    digits = _progression(first)
    if digits is None:
        return None
    offsets = tuple(rank - first[0] for rank in first)
    members = 0
    for group in groups:
        if tuple(rank - group[0] for rank in group) != offsets:
            return None
        if any(group[0] // stride % size for stride, size in digits):
            return None
        members += len(group)
    if members != max(max(group) for group in groups) + 1:
        return None
    return joined(digits)


def _progression(group: tuple[int, ...]) -> RankDigits | None:
    """Strides and sizes whose combinations are exactly the group's offsets, in order."""
    if group[0] != 0:
        return None
    digits: list[tuple[int, int]] = []
    known = 1
    while known < len(group):
        stride = group[known]
        size = 1
        while size * known < len(group) and group[size * known] == size * stride:
            size += 1
        digits.append((stride, size))
        known *= size
    expected = [0]
    for stride, size in digits:
        expected = [base + step * stride for step in range(size) for base in expected]
    chained = all(
        stride * size <= above and above % (stride * size) == 0
        for (stride, size), (above, _) in itertools.pairwise(digits)
    )
    return tuple(digits) if chained and tuple(expected) == group else None


def joined(digits: RankDigits) -> RankDigits:
    """The same digits in increasing stride, neighbours made one."""
    merged: list[tuple[int, int]] = []
    for stride, size in sorted(digits):
        if size == 1:
            continue
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0], merged[-1][1] * size)
        else:
            merged.append((stride, size))
    return tuple(merged)


def together(*parts: RankDigits) -> RankDigits | None:
    """All digits of several; None where two overlap or have unlike radices (of six: 2 x 3 and 3 x 2)."""
    digits = sorted(digit for part in parts for digit in part)
    if any(above % (stride * size) for (stride, size), (above, _) in itertools.pairwise(digits)):
        return None
    return joined(tuple(digits))


def without(digits: RankDigits, removed: RankDigits) -> RankDigits | None:
    """``digits`` less those of ``removed``; None where they cannot be cut along each other's ends."""
    ends = {end for stride, size in (*digits, *removed) for end in (stride, stride * size)}
    kept: list[tuple[int, int]] = []
    gone: set[tuple[int, int]] = set()
    for stride, size in removed:
        cut = _cut(stride, size, ends)
        if cut is None:
            return None
        gone.update(cut)
    for stride, size in digits:
        cut = _cut(stride, size, ends)
        if cut is None:
            return None
        kept.extend(piece for piece in cut if piece not in gone)
    return joined(tuple(kept))


def _cut(stride: int, size: int, ends: set[int]) -> list[tuple[int, int]] | None:
    inside = sorted(end for end in ends if stride <= end <= stride * size)
    if any(high % low for low, high in itertools.pairwise(inside)):
        return None
    return [(low, high // low) for low, high in itertools.pairwise(inside)]
