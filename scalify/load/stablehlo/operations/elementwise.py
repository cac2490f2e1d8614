"""Operations on every element by itself, and constants."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scalify.errors import UnsupportedFormat
from scalify.load.stablehlo.attributes import constant_bytes
from scalify.load.stablehlo.reader import Handler, Step

_RENAMED = {
    "and": "and", "or": "or", "xor": "xor", "not": "not", "is_finite": "is-finite",
    "exponential_minus_one": "exponential-minus-one", "log_plus_one": "log-plus-one",
    "round_nearest_even": "round-nearest-even", "round_nearest_afz": "round-nearest-afz",
    "shift_left": "shift-left", "shift_right_arithmetic": "shift-right-arithmetic",
    "shift_right_logical": "shift-right-logical", "bitcast_convert": "bitcast-convert",
}  # fmt: skip
_SAME = (
    "abs", "add", "atan2", "ceil", "clamp", "convert", "cosine", "divide", "exponential", "floor", "log",
    "logistic", "maximum", "minimum", "multiply", "negate", "power", "remainder", "rsqrt", "select", "sign",
    "sine", "sqrt", "subtract", "tan", "tanh",
)  # fmt: skip
_OPCODES = {
    **{f"stablehlo.{name}": name for name in _SAME},
    **{f"stablehlo.{name}": opcode for name, opcode in _RENAMED.items()},
    "chlo.erf": "erf", "chlo.erfc": "erfc", "chlo.tan": "tan", "chlo.atan": "atan", "chlo.square": "square",
}  # fmt: skip
_IDENTITIES = (
    "stablehlo.optimization_barrier", "sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier",
)  # fmt: skip


def _same(step: Step) -> Sequence[int]:
    return (step.add(_OPCODES[step.name], step.operands),)


def _identity(step: Step) -> Sequence[int]:
    return step.operands


def _nothing(step: Step) -> Sequence[int]:
    return ()


def _compare(step: Step) -> Sequence[int]:
    from jaxlib.mlir.dialects import stablehlo

    direction = stablehlo.ComparisonDirectionAttr(step.attribute("comparison_direction")).value
    return (step.add("compare", step.operands, direction=str(direction)),)


def _constant(step: Step) -> Sequence[int]:
    try:
        value = step.attribute("value")
    except TypeError as error:
        raise UnsupportedFormat(
            f"a constant of type {step.shape.element} is not read",
            hint="constants are arrays of real numbers",
        ) from error
    if not hasattr(value, "is_splat"):
        raise step.refused("holds its elements elsewhere")
    return (step.listing.literal(constant_bytes(value, step.shape), step.shape, step.metadata),)


def _iota(step: Step) -> Sequence[int]:
    return (step.add("iota", (), dimensions=(step.integer("iota_dimension"),)),)


def _reduce_precision(step: Step) -> Sequence[int]:
    exponent, mantissa = step.integer("exponent_bits"), step.integer("mantissa_bits")
    return (step.add("reduce-precision", step.operands, exponent_bits=exponent, mantissa_bits=mantissa),)


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **dict.fromkeys(_OPCODES, _same),
        **dict.fromkeys(_IDENTITIES, _identity),
        "sdy.sharding_group": _nothing,
        "stablehlo.compare": _compare,
        "stablehlo.constant": _constant,
        "stablehlo.iota": _iota,
        "stablehlo.reduce_precision": _reduce_precision,
    }
)
