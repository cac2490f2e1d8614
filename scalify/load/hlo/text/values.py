"""Shapes, lists and literals within HLO text."""

from math import prod

import numpy as np

from scalify.errors import UnsupportedFormat
from scalify.load.hlo.literals import STORAGE, stored_bytes
from scalify.load.hlo.program import Literal, Shape
from scalify.load.hlo.shapes import ELEMENT_NAMES, checked_dims
from scalify.load.hlo.text.tokens import MAX_DEPTH, Cursor

_ELEMENTS = frozenset(ELEMENT_NAMES.values())


def shape(cursor: Cursor, where: str, depth: int = 0) -> Shape:
    """``f32[2,3]{1,0}``, or a tuple of shapes."""
    if depth > MAX_DEPTH:
        raise cursor.wrong("tuples are nested too deep")
    if cursor.take("("):
        parts: list[Shape] = []
        while not cursor.take(")"):
            parts.append(shape(cursor, where, depth + 1))
            if cursor.text != ")":
                cursor.expect(",")
        return Shape("tuple", parts=tuple(parts))
    element = cursor.word("a shape")
    if element not in _ELEMENTS:
        raise cursor.wrong(f"there is no element type {element[:40]!r}")
    cursor.expect("[")
    dims: list[int] = []
    while not cursor.take("]"):
        if cursor.text == "<=":
            raise UnsupportedFormat(
                f"{where} has a dimension whose size is known only at run time",
                hint="compile for fixed shapes (pad to the largest) and write the module again",
            )
        dims.append(cursor.integer())
        if cursor.text != "]":
            cursor.expect(",")
    order, tiled = _layout(cursor)
    return Shape(element, checked_dims(tuple(dims), where), (), order, tiled)


def _layout(cursor: Cursor) -> tuple[tuple[int, ...] | None, bool]:
    """``{1,0:T(8,128)S(1)}``, right after the dimensions: the order, and whether there is more to it."""
    if cursor.text != "{" or not cursor.adjacent:
        return None, False
    cursor.advance()
    order: list[int] = []
    tiled = False
    while not cursor.take("}"):
        if cursor.take(":"):
            tiled = tiled or not cursor.text.startswith("S")
            cursor.raw()
        else:
            order.append(cursor.integer())
            cursor.take(",")
    return tuple(order), tiled


def integers(cursor: Cursor) -> tuple[int, ...]:
    """``{0,1}``."""
    return _listed(cursor, "{", "}")


def _listed(cursor: Cursor, opening: str, closing: str) -> tuple[int, ...]:
    cursor.expect(opening)
    found: list[int] = []
    while not cursor.take(closing):
        found.append(cursor.integer())
        if cursor.text != closing:
            cursor.expect(",")
    return tuple(found)


def lists(cursor: Cursor) -> tuple[tuple[int, ...], ...]:
    """``{{0,1},{2,3}}``."""
    cursor.expect("{")
    found: list[tuple[int, ...]] = []
    while not cursor.take("}"):
        found.append(integers(cursor))
        cursor.take(",")
    return tuple(found)


def bracketed(cursor: Cursor) -> tuple[int, ...]:
    """``[2,4]``."""
    return _listed(cursor, "[", "]")


def parenthesized(cursor: Cursor) -> tuple[int, ...]:
    """``(1,0)``."""
    return _listed(cursor, "(", ")")


def literal(cursor: Cursor, shape: Shape, where: str) -> Literal:
    """The elements of a constant, whose parenthesis was just opened."""
    if shape.element not in STORAGE:
        raise UnsupportedFormat(
            f"the constant {where} has element type {shape.element}, which is not read",
            hint="constants are arrays of numbers of 8 bits or more",
        )
    numbers = _numbers(cursor, shape, where)
    per_element = 2 if shape.element in {"c64", "c128"} else 1
    if len(numbers) != prod(shape.dims) * per_element:
        raise cursor.wrong(f"the constant {where} does not have as many elements as its shape says")
    try:
        return Literal(shape, stored_bytes(numbers, shape.element))
    except (ValueError, OverflowError):
        raise cursor.wrong(f"the constant {where} holds what is no {shape.element}") from None


def _numbers(cursor: Cursor, shape: Shape, where: str) -> list[str]:
    """The words between the braces; those stand as deep as the array has dimensions."""
    numbers: list[str] = []
    depth, rank = 0, len(shape.dims)
    within_complex = False
    while not (cursor.text == ")" and depth == 0 and not within_complex):
        text = cursor.advance()
        if text == "{" and depth < rank:
            depth += 1
        elif text == "}" and depth > 0:
            depth -= 1
        elif text in "()" and text and shape.element in {"c64", "c128"} and (text == ")") == within_complex:
            within_complex = text == "("
        elif text == "...":
            raise UnsupportedFormat(
                f"the constant {where} is printed without its elements",
                hint="print the module with large constants, or write it serialized",
            )
        elif text == ",":
            continue
        elif text and depth == rank and text not in "(){}":
            numbers.append(text)
        else:
            raise cursor.wrong(f"the constant {where} is not an array of {rank} dimensions")
    cursor.advance()
    return numbers


def float_of(cursor: Cursor) -> float:
    """One real number."""
    text = cursor.word("a number")
    try:
        return float(np.float64(text))
    except ValueError:
        raise cursor.wrong(f"expected a number, found {text[:40]!r}") from None
