"""Frozen dataclasses to JSON and back, strictly: what does not fit the annotations is an error.

A field with a default may be left out: it was added after the file was written.
Enumerations are written by name, in lower case. Output is ASCII: whatever a foreign string contains, it can
be printed.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Reader = Callable[[Any], Any]
Read = TypeVar("Read")


class CodecError(ValueError):
    """Data that is not what the type asks for."""


def plain(content: object) -> Any:
    """Dataclasses, mappings and sequences as JSON knows them."""
    if is_dataclass(content) and not isinstance(content, type):
        return {name: plain(getattr(content, name)) for name in _names(type(content))}
    if isinstance(content, Mapping):
        return {str(key): plain(value) for key, value in cast(Mapping[object, object], content).items()}
    if isinstance(content, tuple | list):
        return [plain(item) for item in cast(tuple[object, ...], content)]
    if isinstance(content, Enum):
        return content.name.lower()
    if content is None or isinstance(content, str | bool | int | float):
        return content
    raise TypeError(f"{type(content).__name__} has no place in a result")


def document(content: object, *, indent: int | None = None) -> str:
    """``content`` as JSON text."""
    separators = None if indent else (",", ":")
    text = json.dumps(plain(content), indent=indent, allow_nan=False, separators=separators)
    return text.replace("#", r"\u0023")  # only in strings: a CI runner obeys "##[...]" wherever it stands


def read(kind: type[Read], content: object) -> Read:
    """Parsed JSON as a ``kind``."""
    return _reader(kind)(content)


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _reader(kind: Any) -> Reader:
    if isinstance(kind, NewType):
        return _reader(kind.__supertype__)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _optional(kind)
    if origin is Literal:
        return _choice(get_args(kind))
    if origin is tuple:
        return _sequence(_reader(get_args(kind)[0]))
    if origin is Mapping:
        return _mapping(_reader(get_args(kind)[1]))
    if is_dataclass(kind):
        return _record(cast(type, kind))
    if kind is float:
        return _number
    if kind in (int, str, bool):
        return lambda item: _exact(kind, item)
    if issubclass(kind, Enum):
        return _choice_of({member.name.lower(): member for member in kind})
    raise TypeError(f"no reader for {kind}")


def _exact(kind: type, item: Any) -> Any:
    if type(item) is not kind:
        raise CodecError(f"{item!r:.80} where {kind.__name__} belongs")
    return item


def _number(item: Any) -> float:
    if type(item) not in (float, int):
        raise CodecError(f"{item!r:.80} where a number belongs")
    return float(item)


def _choice(choices: tuple[Any, ...]) -> Reader:
    return _choice_of({choice: choice for choice in choices})


def _choice_of(choices: Mapping[Any, Any]) -> Reader:
    def read_choice(item: Any) -> Any:
        if not isinstance(item, str | int) or item not in choices:
            raise CodecError(f"{item!r:.80} is none of {', '.join(map(str, choices))}")
        return choices[item]

    return read_choice


def _optional(kind: Any) -> Reader:
    some = [arg for arg in get_args(kind) if arg is not NoneType]
    if len(some) != 1:
        raise TypeError(f"{kind} is not one type or None")
    inner = _reader(some[0])
    return lambda item: None if item is None else inner(item)


def _sequence(inner: Reader) -> Reader:
    return lambda item: tuple([inner(element) for element in _exact(list, item)])


def _mapping(inner: Reader) -> Reader:
    return lambda item: {key: inner(element) for key, element in _exact(dict, item).items()}


def _record(kind: type) -> Reader:
    hints = get_type_hints(kind)
    inners = {name: _reader(hints[name]) for name in _names(kind)}
    needed = {field.name for field in fields(kind) if MISSING is field.default is field.default_factory}

    def read_record(item: Any) -> Any:
        given = _exact(dict, item)
        if not needed <= given.keys() <= inners.keys():
            strange = sorted((needed - given.keys()) | (given.keys() - inners.keys()))
            raise CodecError(f"fields of {kind.__name__} differ: {', '.join(map(repr, strange))[:200]}")
        return kind(**{name: inners[name](value) for name, value in given.items()})

    return read_record
