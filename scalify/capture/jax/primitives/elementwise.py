"""Primitives that act on every element by itself."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from scalify.capture.jax.reader import Call, Handler
from scalify.load.hlo.program import Shape

_SAME = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "remainder", "max": "maximum",
    "min": "minimum", "pow": "power", "atan2": "atan2", "and": "and", "or": "or", "xor": "xor",
    "shift_left": "shift-left", "shift_right_arithmetic": "shift-right-arithmetic",
    "shift_right_logical": "shift-right-logical", "neg": "negate", "abs": "abs", "exp": "exponential",
    "exp2": "exp2", "expm1": "exponential-minus-one", "log": "log", "log1p": "log-plus-one", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "sin": "sine", "cos": "cosine", "tan": "tan", "tanh": "tanh", "atan": "atan",
    "erf": "erf", "erfc": "erfc", "logistic": "logistic", "floor": "floor", "ceil": "ceil", "sign": "sign",
    "not": "not", "is_finite": "is-finite", "square": "square", "clamp": "clamp", "add_any": "add",
    "convert_element_type": "convert",
}  # fmt: skip
_DIRECTIONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}
# Annotations and copies: a value stays what it is. pvary and pcast say how it varies over the mesh.
_IDENTITIES = (
    "stop_gradient", "copy", "copy_p", "optimization_barrier", "sharding_constraint", "device_put", "reshard",
    "mesh_cast", "pvary", "pcast", "random_wrap", "random_unwrap", "layout_constraint", "name",
)  # fmt: skip
MAX_POWER = 64


def _same(call: Call) -> Sequence[int]:
    return (call.add(_SAME[call.primitive], call.operands),)


def _compare(call: Call) -> Sequence[int]:
    return (call.add("compare", call.operands, direction=_DIRECTIONS[call.primitive]),)


def _identity(call: Call) -> Sequence[int]:
    return call.operands


def _round(call: Call) -> Sequence[int]:
    """Halves to even; or away from zero, which has no op of its own."""
    even = int(call.params["rounding_method"]) == 1
    return (call.add("round-nearest-even" if even else "round-nearest-afz", call.operands),)


def _integer_pow(call: Call) -> Sequence[int]:
    """As JAX lowers it: by squaring; a negative power divides."""
    power, (base,) = int(call.params["y"]), call.operands
    if not 0 < abs(power) <= MAX_POWER:
        exponent = call.constant(power, Shape(call.shape.element))
        return (call.add("power", (base, exponent)),)
    product, square, left = None, base, abs(power)
    while left:
        if left & 1:
            product = square if product is None else call.add("multiply", (product, square))
        left >>= 1
        square = call.add("multiply", (square, square)) if left else square
    assert product is not None
    if power > 0:
        return (product,)
    return (call.add("divide", (call.constant(1, Shape(call.shape.element)), product)),)


def _select(call: Call) -> Sequence[int]:
    """``select_n(which, case 0, case 1, ...)``; a truth chooses between two, false first."""
    which, *cases = call.operands
    shape = call.shape_at(0)
    chosen = cases[-1]
    for place in reversed(range(len(cases) - 1)):
        if shape.element == "pred":
            return (call.add("select", (which, chosen, cases[place])),)
        number = call.constant(place, Shape(shape.element))
        here = call.add("compare", (which, number), Shape("pred", shape.dims), direction="LE")
        chosen = call.add("select", (here, cases[place], chosen))
    return (chosen,)


def _iota(call: Call) -> Sequence[int]:
    return (call.add("iota", (), dimensions=(int(call.params["dimension"]),)),)


def _reduce_precision(call: Call) -> Sequence[int]:
    params: Mapping[str, Any] = call.params
    return (
        call.add(
            "reduce-precision",
            call.operands,
            exponent_bits=int(params["exponent_bits"]),
            mantissa_bits=int(params["mantissa_bits"]),
        ),
    )


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **dict.fromkeys(_SAME, _same),
        **dict.fromkeys(_DIRECTIONS, _compare),
        **dict.fromkeys(_IDENTITIES, _identity),
        "round": _round,
        "integer_pow": _integer_pow,
        "select_n": _select,
        "iota": _iota,
        "reduce_precision": _reduce_precision,
    }
)
