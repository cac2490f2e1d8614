"""Many names that differ in their numbers only, as one: ``layers.*.q_proj.weight``, 32 times."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

RANGES_SHOWN = 6

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Generic[Item]):
    """Items that say the same of names of one pattern."""

    items: tuple[Item, ...]
    name: str

    @property
    def first(self) -> Item:
        return self.items[0]


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

    Numbers that differ are ``*``, except where one of them tells the names apart, does not just run from 0,
    and is said in short: ``layers.{0-3,7}.wq``.
    """
    columns = list(zip(*map(_NUMBER.findall, names), strict=True))
    shown: list[str | None] = [None] * len(columns)
    for place, column in enumerate(columns):
        if len(set(column)) > 1:
            tells = len(set(column)) == len(names) and not any(shown)
            shown[place] = _ranges([int(number) for number in column]) if tells else "*"
    places = iter(shown)
    return _NUMBER.sub(lambda found: next(places) or found[0], names[0])


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
