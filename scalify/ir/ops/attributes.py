"""Kinds of attributes: what a value may look like, before anybody asks what it means."""

from dataclasses import dataclass
from typing import Literal

from scalify.ir.graph import Attr
from scalify.ir.mesh import RankInt

Kind = Literal[
    "int", "float", "bool", "str", "ints", "floats", "pairs", "groups",
    "rank integers", "data",
]  # fmt: skip

MAX_MAGNITUDE = 2**64
MAX_TERMS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AttrSpec:
    """One attribute of an op. ``default`` is what ``GraphBuilder`` fills in; a graph always states it.

    ``optional`` means a graph may leave it out; ``choices`` are the words a ``str`` may be.
    """

    kind: Kind
    default: Attr | None = None
    optional: bool = False
    choices: tuple[str, ...] = ()


def wrong_value(spec: AttrSpec, value: Attr) -> str | None:
    """What is wrong with a value, or None."""
    if not _fits(spec.kind, value):
        return f"is {_shown(value)}, not of kind {spec.kind!r}"
    if spec.choices and value not in spec.choices:
        return f"is {_shown(value)}, none of {', '.join(spec.choices)}"
    return None


def _fits(kind: Kind, value: Attr) -> bool:
    match kind:
        case "int":
            return _is_int(value)
        case "float":
            return isinstance(value, float) or _is_int(value)
        case "bool":
            return isinstance(value, bool)
        case "str":
            return isinstance(value, str)
        case "ints":
            return isinstance(value, tuple) and all(map(_is_int, value))
        case "floats":
            return isinstance(value, tuple) and all(_fits("float", item) for item in value)
        case "pairs":
            return isinstance(value, tuple) and all(map(_is_pair, value))
        case "groups":
            return isinstance(value, tuple) and all(_fits("ints", item) for item in value)
        case "rank integers":
            return isinstance(value, tuple) and all(_is_rank_integer(item) for item in value)
        case "data":
            return isinstance(value, tuple) and all(_is_element(item) for item in value)


def _is_int(value: Attr) -> bool:
    return type(value) is int and -MAX_MAGNITUDE < value < MAX_MAGNITUDE


def _is_pair(value: Attr) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_int, value))


def _is_rank_integer(value: Attr) -> bool:
    if isinstance(value, RankInt):
        numbers = (value.base, *(number for term in value.terms for number in term))
        return len(value.terms) <= MAX_TERMS and all(map(_is_int, numbers))
    return _is_int(value)


def _is_element(value: Attr) -> bool:
    return isinstance(value, bool | float) or _is_rank_integer(value)


def _shown(value: Attr) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
