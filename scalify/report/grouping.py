"""Many names that differ in their numbers only, as one: ``layers.*.q_proj.weight``, 32 times."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

RANGES_SHOWN = 4

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Generic[Item]):
    """Items that say the same of names of one pattern."""

    items: tuple[Item, ...]
    name: str


def grouped(
    items: Iterable[Item], name: Callable[[Item], str], said: Callable[[Item], str]
) -> tuple[Group[Item], ...]:
    """Groups in the order of their first items."""
    groups: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        groups.setdefault((_NUMBER.sub("*", name(item)), said(item)), []).append(item)
    return tuple(
        Group(items=tuple(group), name=pattern([name(item) for item in group])) for group in groups.values()
    )


def pattern(names: Sequence[str]) -> str:
    """Names that are alike but for numbers, as one.

    Numbers that differ are ``*`` if they run from 0, and are said if they can be said in short:
    ``layers.{0-3,7}.wq``.
    """
    first = names[0]
    columns = list(zip(*map(_NUMBER.findall, names), strict=True))
    differing = [column for column in columns if len(set(column)) > 1]
    shown = _ranges([int(number) for number in differing[0]]) if len(differing) == 1 else "*"
    places = iter(columns)
    return _NUMBER.sub(lambda found: shown if next(places) in differing else found[0], first)


def _ranges(numbers: Sequence[int]) -> str:
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    if ranges == [[0, len(numbers) - 1]] or len(ranges) > RANGES_SHOWN:
        return "*"
    return "{" + ",".join(f"{low}-{high}" if low < high else str(low) for low, high in ranges) + "}"
