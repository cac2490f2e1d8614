"""Operations that are told by a block how to combine or to compare.

A block of one operation on its two arguments names the combination. The blocks that JAX writes for ``argmax``
and for sorts of floats are recognised by their wiring as a whole, and nothing else is.
"""

from collections.abc import Mapping, Sequence
from string import ascii_letters
from types import MappingProxyType
from typing import Any

from scalify.load.hlo.program import Shape, WindowDim
from scalify.load.stablehlo.attributes import rows, scatter_dims
from scalify.load.stablehlo.reader import TERMINATORS, Handler, Step

_COMBINED = {
    "stablehlo.add": "add", "stablehlo.multiply": "multiply", "stablehlo.maximum": "maximum",
    "stablehlo.minimum": "minimum", "stablehlo.and": "and", "stablehlo.or": "or",
}  # fmt: skip
_LONGEST = 2000


def _arg(direction: str, wins: str) -> str:
    """The block of an ``argmax`` or ``argmin``: of values a, c at b, d; ``wins`` says when a does."""
    first = f"or({wins},and(compare EQ(a,c),compare LT(b,d)))"
    return f"select({wins},a,c);select({first},b,d)".replace("?", direction)


_ARGS = {
    _arg(direction, wins): opcode
    # Of floats, what is no number wins.
    for wins in ("or(compare ?(a,c),compare NE(a,a))", "compare ?(a,c)")
    for direction, opcode in (("GT", "argmax"), ("LT", "argmin"))
}


def combination(step: Step, region: int = 0) -> str | None:
    """The opcode by which a block combines its two arguments; ``second`` if it returns the second."""
    block = step.block(region)
    text = wiring(block)
    for name, opcode in _COMBINED.items():
        word = name.partition(".")[2]
        if text in (f"{word}(a,b)", f"{word}(b,a)"):
            return opcode
    return "second" if text == "b" else None


def wiring(block: Any) -> str:
    """What a block returns as terms over its arguments a, b, ...; "?" for what is long."""
    terms: dict[Any, str] = dict(zip(block.arguments, ascii_letters, strict=False))
    for view in block.operations:
        operation = view.operation
        operands = [terms.get(operand) or _outside(operand) for operand in operation.operands]
        if operation.name in TERMINATORS:
            return ";".join(operands)
        term = f"{_said(operation)}({','.join(operands)})" if operands else _said(operation)
        for result in operation.results:
            terms[result] = term if len(term) <= _LONGEST and len(operation.results) == 1 else "?"
    return "?"


def _outside(value: Any) -> str:
    """A value from around the block is named if it is a constant."""
    owner = value.owner
    return _said(owner) if getattr(owner, "name", "") == "stablehlo.constant" else "?"


def _said(operation: Any) -> str:
    from jaxlib.mlir.dialects import stablehlo

    word = str(operation.name).partition(".")[2]
    attributes = operation.attributes
    if word == "compare":
        return f"{word} {stablehlo.ComparisonDirectionAttr(attributes['comparison_direction']).value}"
    if word == "constant":
        value = str(attributes["value"]).partition(" : ")[0]
        return _SPOKEN.get(value, value)
    return "?" if list(attributes) or list(operation.regions) else word


def _reduce(step: Step) -> Sequence[int]:
    count = len(step.shapes)
    dims = step.integers("dimensions")
    if count == 2 and len(dims) == 1:
        return _found(step, dims)
    opcode = combination(step)
    if count != 1 or opcode in (None, "second"):
        raise step.refused("combines in a way that has no name here")
    assert opcode is not None
    combiner = step.listing.combiner(opcode, step.shape.element)
    return (step.add("reduce", step.operands, dimensions=dims, called=(combiner,)),)


def _found(step: Step, dims: tuple[int, ...]) -> Sequence[int]:
    """The place of the first greatest or least element, and that element."""
    opcode = _ARGS.get(wiring(step.block()))
    values = step.operands[0]
    counted = step.listing.opcode(step.operands[1]) == ("iota", dims)
    if opcode is None or not counted or not _starts_at_the_bound(step, opcode):
        raise step.refused("combines in a way that has no name here")
    combined, element = ("maximum" if opcode == "argmax" else "minimum"), step.shapes[0].element
    best = step.add(
        "reduce",
        (values, step.operands[2]),
        step.shapes[0],
        dimensions=dims,
        called=(step.listing.combiner(combined, element),),
    )
    return best, step.add(opcode, (values,), step.shapes[1], dimensions=dims)


def _starts_at_the_bound(step: Step, opcode: str) -> bool:
    """What the search begins with is no element that could win, and its place is 0."""
    return step.listing.known(step.operands[3]) == 0 and step.listing.is_bound(
        step.operands[2], lowest=opcode == "argmax"
    )


def _reduce_window(step: Step) -> Sequence[int]:
    sizes = step.integers("window_dimensions")
    ones = (1,) * len(sizes)
    padding = step.attribute("padding")
    lows_highs = ((0, 0),) * len(sizes) if padding is None else rows(padding)
    window = tuple(
        WindowDim(size, stride, low, high, dilation, holes)
        for size, stride, (low, high), dilation, holes in zip(
            sizes,
            step.integers("window_strides", ones),
            lows_highs,
            step.integers("window_dilations", ones),
            step.integers("base_dilations", ones),
            strict=True,
        )
    )
    opcode = combination(step)
    if len(step.shapes) != 1 or opcode in (None, "second"):
        raise step.refused("combines in a way that has no name here")
    assert opcode is not None
    combiner = step.listing.combiner(opcode, step.shape.element)
    return (step.add("reduce-window", step.operands, window=window, called=(combiner,)),)


def _scatter(step: Step) -> Sequence[int]:
    opcode = combination(step)
    if len(step.shapes) != 1 or opcode is None:
        raise step.refused("combines in a way that has no name here")
    dims = scatter_dims(step.attribute("scatter_dimension_numbers"))
    combiner = step.listing.combiner(opcode, step.shape.element)
    return (step.add("scatter", step.operands, gather=dims, called=(combiner,)),)


def _in_total_order(direction: str) -> str:
    """As JAX compares floats: zeros are one, and what is no number is one and comes last."""
    sides = (f"select(compare NE({x},{x}),nan,select(compare EQ({x},zero),zero,{x}))" for x in "ab")
    return f"compare {direction}({','.join(sides)})"


_ORDERS = {
    wired: direction
    for direction in ("LT", "GT")
    for wired in (f"compare {direction}(a,b)", _in_total_order(direction))
}
# What is no number is printed by its bits, which depend on the type.
_SPOKEN = {
    "dense<0.000000e+00>": "zero", "dense<0x7E00>": "nan", "dense<0x7FC0>": "nan",
    "dense<0x7FC00000>": "nan", "dense<0x7FF8000000000000>": "nan",
}  # fmt: skip


def _sort(step: Step) -> Sequence[int]:
    direction = _ORDERS.get(wiring(step.block()))
    if direction is None:
        raise step.refused("compares in a way that has no name here")
    elements = [shape.element for shape in step.shapes]
    whole = step.add(
        "sort",
        step.operands,
        step.shapes[0] if len(step.shapes) == 1 else Shape("tuple", parts=step.shapes),
        dimensions=(step.integer("dimension"),),
        stable=bool(step.attribute("is_stable") and step.attribute("is_stable").value),
        called=(step.listing.comparator(direction, elements),),
    )
    return (whole,) if len(step.shapes) == 1 else step.listing.parts(whole, step.metadata)


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "stablehlo.reduce": _reduce,
        "stablehlo.reduce_window": _reduce_window,
        "stablehlo.scatter": _scatter,
        "stablehlo.sort": _sort,
    }
)
