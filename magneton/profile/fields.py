"""Read typed fields out of parsed JSON that may say anything."""

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from magneton.profile.damage import damaged, quoted

ChoiceT = TypeVar("ChoiceT", bound=str)

_INT64 = range(-(2**63), 2**63)


class Fields:
    """The fields of one JSON object at ``where``; each is read once, and ``close`` refuses the rest."""

    def __init__(self, where: str, content: object) -> None:
        self._where = where
        self._rest: dict[str, Any] = dict(_expect(dict, content, where))

    def close(self) -> None:
        if self._rest:
            raise damaged(f"{self._where} has an unknown field {quoted(min(self._rest))}")

    def nested(self, name: str) -> "Fields":
        return Fields(f"{self._where}: {name}", self._take(name))

    def nested_or_none(self, name: str) -> "Fields | None":
        found = self._take(name)
        return None if found is None else Fields(f"{self._where}: {name}", found)

    def nested_list(self, name: str) -> tuple["Fields", ...]:
        items = _expect(list, self._take(name), f"{self._where}: {name}")
        return tuple(Fields(f"{self._where}: {name}[{i}]", item) for i, item in enumerate(items))

    def text(self, name: str) -> str:
        return _expect(str, self._take(name), f"{self._where}: {name}")

    def texts(self, name: str) -> tuple[str, ...]:
        where = f"{self._where}: {name}"
        return tuple(_expect(str, item, where) for item in _expect(list, self._take(name), where))

    def choice(self, name: str, *allowed: ChoiceT) -> ChoiceT:
        found = self.text(name)
        for value in allowed:
            if found == value:
                return value
        raise damaged(f"{self._where}: {name} is {quoted(found)}, not one of {', '.join(allowed)}")

    def integer(self, name: str, *, at_least: int | None = None) -> int:
        return _integer(self._take(name), f"{self._where}: {name}", at_least)

    def number(self, name: str) -> float:
        where = f"{self._where}: {name}"
        found = self._take(name)
        number = (
            float(_integer(found, where, None)) if isinstance(found, int) else _expect(float, found, where)
        )
        if not math.isfinite(number):
            raise damaged(f"{where} is not finite")
        return number

    def mapping(self, name: str) -> Mapping[str, str]:
        where = f"{self._where}: {name}"
        found = _expect(dict, self._take(name), where)
        return {key: _expect(str, item, where) for key, item in found.items()}

    def integers(self, name: str, *, at_least: int) -> Mapping[str, int]:
        where = f"{self._where}: {name}"
        found = _expect(dict, self._take(name), where)
        return {key: _integer(item, where, at_least) for key, item in found.items()}

    def _take(self, name: str) -> object:
        if name not in self._rest:
            raise damaged(f"{self._where} lacks the field {name!r}")
        return self._rest.pop(name)


KindT = TypeVar("KindT", dict[str, Any], list[Any], str, float)


def _expect(kind: type[KindT], found: object, where: str) -> KindT:
    if not isinstance(found, kind):
        raise damaged(f"{where} is no {_NAMES[kind]}")
    return found


_NAMES: Mapping[type, str] = {dict: "object", list: "list", str: "string", float: "number"}


def _integer(found: object, where: str, at_least: int | None) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or found not in _INT64:
        raise damaged(f"{where} is no whole number of 64 bits")
    if at_least is not None and found < at_least:
        raise damaged(f"{where} is {found}, below {at_least}")
    return found
