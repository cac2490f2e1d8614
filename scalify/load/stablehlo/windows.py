"""Sums and products over all that came before: as such, and as the windows that StableHLO writes for them."""

from scalify.ir.graph import NodeId
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.hlo.emit import Step, Value
from scalify.load.hlo.opaque import opaque
from scalify.load.hlo.program import WindowDim
from scalify.load.hlo.reduction import constant_value, reduce_kind

_CUMULATIVE = {"sum": "cumsum", "prod": "cumprod"}
_NEUTRAL = {"sum": 0, "prod": 1}


def cumulative(step: Step, value: NodeId, op: str, axis: int, direction: str) -> NodeId:
    """``cumsum`` or ``cumprod`` along an axis, from its end where the direction is ``reverse``."""
    type = step.type_of(value)
    if direction != "reverse":
        return step.emit(op, (value,), axis=axis)
    turned = step.emit("reverse", (value,), type, "turned", axes=(axis,))
    summed = step.emit(op, (turned,), step="summed", axis=axis)
    return step.emit("reverse", (summed,), axes=(axis,))


def reduce_window(step: Step) -> Value:
    """A window as long as its axis, over nothing but padding and what came before, is a cumulative sum."""
    if len(step.operands) != 2 or step.instruction.shape.element == "tuple":
        return opaque(step)
    operand, init = step.arrays(2)
    kind = reduce_kind(step)
    window = step.instruction.window
    shape = step.type_of(operand).shape
    if len(window) != len(shape):
        raise step.wrong(f"has a window of {len(window)} dimensions over {len(shape)}")
    wide = [axis for axis, dim in enumerate(window) if dim != WindowDim()]
    plain = KIND_OF[step.type.dtype] in ("float", "int") and step.type.shape == shape
    if kind not in _CUMULATIVE or len(wide) != 1 or not plain:
        return opaque(step)
    if constant_value(step.emission, init) != _NEUTRAL[kind]:
        return opaque(step)
    (axis,) = wide
    size = shape[axis]
    directions = {WindowDim(size=size, low=size - 1): "", WindowDim(size=size, high=size - 1): "reverse"}
    if window[axis] not in directions:
        return opaque(step)
    return cumulative(step, operand, _CUMULATIVE[kind], axis, directions[window[axis]])
