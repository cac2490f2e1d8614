"""Typed access to untrusted JSON: what is missing or of another kind is an InvalidGraph."""

from collections.abc import Mapping
from typing import cast

from scalify.errors import InvalidGraph


def damaged(what: str) -> InvalidGraph:
    """The graph breaks its format."""
    return InvalidGraph(f"damaged graph: {what}", hint="export it again")


def mapping(value: object, what: str) -> Mapping[str, object]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise damaged(f"{what} is not an object")
    return cast(Mapping[str, object], value)


def array(value: object, what: str) -> list[object]:
    """A JSON array."""
    if not isinstance(value, list):
        raise damaged(f"{what} is not a list")
    return cast(list[object], value)


def text(value: object, what: str) -> str:
    """A JSON string."""
    if not isinstance(value, str):
        raise damaged(f"{what} is not a string")
    return value


def integer(value: object, what: str) -> int:
    """A JSON integer that fits 64 bits; true and false are none."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**64:
        raise damaged(f"{what} is not an integer")
    return value


def only(value: object, what: str) -> tuple[str, object]:
    """The one entry of a tagged union: ``{"as_int": 3}``."""
    fields = mapping(value, what)
    if len(fields) != 1:
        raise damaged(f"{what} is not one of several kinds")
    return next(iter(fields.items()))
