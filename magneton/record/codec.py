"""Frozen dataclasses to one line of JSON and back, strictly: what does not fit the annotations is an error.

Used between a worker and its parent, which run the same files of ours, so names of fields are the whole
schema. NaN and infinities use JSON's usual extension (``NaN``, ``Infinity``), which Python reads and writes.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Reader = Callable[[Any], Any]
T = TypeVar("T")

SCALARS = frozenset({bool, int, float, str})


class CodecError(ValueError):
    """Text that is not what the type asks for."""


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _plain(item: object) -> object:
    """What the JSON encoder does not know by itself; a NumPy integer is refused like any stranger."""
    if is_dataclass(item) and not isinstance(item, type):
        return {name: getattr(item, name) for name in _names(type(item))}
    if isinstance(item, Path):
        return str(item)
    if isinstance(item, Mapping):
        return dict(cast(Mapping[str, object], item))
    raise TypeError(f"{type(item).__name__} has no place in a journal")


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_plain)


def encode(item: object) -> str:
    return _ENCODER.encode(item)


def decode(kind: type[T], text: str | bytes) -> T:
    try:
        return reader(kind)(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise CodecError(f"not a {kind.__name__}: {error}") from error


@cache
def reader(kind: Any) -> Reader:
    """The function that checks parsed JSON against ``kind`` and builds it."""
    if isinstance(kind, NewType):
        return reader(kind.__supertype__)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _union(kind)
    if origin is Literal:
        return _choice(get_args(kind))
    if origin is tuple:
        return _sequence(get_args(kind))
    if origin is Mapping:
        return _mapping(reader(get_args(kind)[1]))
    if is_dataclass(kind):
        return _record(cast(type, kind))
    if kind is float:
        return _float
    if kind is Path or issubclass(kind, StrEnum):
        return lambda item: kind(_exact(str, item))
    if kind in (int, str, bool):
        return lambda item: _exact(kind, item)
    raise TypeError(f"no reader for {kind}")


def _exact(kind: type, item: Any) -> Any:
    if type(item) is not kind:
        raise CodecError(f"{item!r:.80} where {kind.__name__} belongs")
    return item


def _float(item: Any) -> float:
    if type(item) is not float and type(item) is not int:
        raise CodecError(f"{item!r:.80} where a number belongs")
    return float(item)


def _choice(choices: tuple[Any, ...]) -> Reader:
    def read(item: Any) -> Any:
        if item not in choices:
            raise CodecError(f"{item!r:.80} is none of {choices}")
        return item

    return read


def _union(kind: Any) -> Reader:
    """One type or None, or scalars, which JSON tells apart, or records, which their field ``kind`` does."""
    kinds = get_args(kind)
    some = [arg for arg in kinds if arg is not NoneType]
    if len(some) == 1:
        inner = reader(some[0])
        return lambda item: None if item is None else inner(item)
    if SCALARS.issuperset(some):
        return _scalar(kinds)
    if all(map(is_dataclass, kinds)):
        return _alternatives(kinds)
    raise TypeError(f"no reader for {kind}")


def _scalar(kinds: tuple[type, ...]) -> Reader:
    def read(item: Any) -> Any:
        if type(item) not in kinds:
            raise CodecError(f"{item!r:.80} is none of {', '.join(kind.__name__ for kind in kinds)}")
        return item

    return read


def _alternatives(kinds: tuple[type, ...]) -> Reader:
    inners = {tag: reader(kind) for kind in kinds for tag in get_args(get_type_hints(kind)["kind"])}

    def read(item: Any) -> Any:
        tag = _exact(dict, item).get("kind")
        if type(tag) is not str or tag not in inners:
            raise CodecError(f"{tag!r:.80} is none of {', '.join(inners)}")
        return inners[tag](item)

    return read


def _sequence(args: tuple[Any, ...]) -> Reader:
    if args[-1] is Ellipsis:
        inner = reader(args[0])
        return lambda item: tuple([inner(element) for element in _exact(list, item)])
    inners = tuple(reader(arg) for arg in args)

    def read(item: Any) -> tuple[Any, ...]:
        if len(_exact(list, item)) != len(inners):
            raise CodecError(f"{len(item)} elements where {len(inners)} belong")
        return tuple([inner(element) for inner, element in zip(inners, item, strict=True)])

    return read


def _mapping(inner: Reader) -> Reader:
    return lambda item: {key: inner(element) for key, element in _exact(dict, item).items()}


def _record(kind: type) -> Reader:
    hints = get_type_hints(kind)
    inners = {name: reader(hints[name]) for name in _names(kind)}

    def read(item: Any) -> Any:
        if _exact(dict, item).keys() != inners.keys():
            strange = sorted(item.keys() ^ inners.keys())
            raise CodecError(f"fields of {kind.__name__} differ: {', '.join(map(repr, strange))}")
        return kind(**{name: inner(item[name]) for name, inner in inners.items()})

    return read
