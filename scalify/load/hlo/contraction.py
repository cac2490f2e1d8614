"""dot and convolution."""

from collections.abc import Callable, Mapping
from string import ascii_letters
from types import MappingProxyType

from scalify.ir.graph import NodeId, TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.hlo.emit import Step, Value
from scalify.load.hlo.opaque import opaque
from scalify.load.hlo.program import ConvDims, DotDims, WindowDim


def _dot(step: Step) -> Value:
    """Result dimensions: batch, then what is free on the left, then on the right."""
    operands = lhs, rhs = step.arrays(2)
    dims = step.instruction.dot or DotDims()
    left, right = len(step.type_of(lhs).shape), len(step.type_of(rhs).shape)
    step.axes((*dims.lhs_batch, *dims.lhs_contracting), left, "left dimensions")
    step.axes((*dims.rhs_batch, *dims.rhs_contracting), right, "right dimensions")
    if len(dims.lhs_batch) != len(dims.rhs_batch) or len(dims.lhs_contracting) != len(dims.rhs_contracting):
        raise step.wrong("pairs different numbers of dimensions")
    if left + right - len(dims.lhs_batch) - len(dims.lhs_contracting) > len(ascii_letters):
        return opaque(step)
    return step.emit("einsum", operands, spec=_spec(dims, left, right))


def _spec(dims: DotDims, left: int, right: int) -> str:
    letters = iter(ascii_letters)
    lhs = {axis: next(letters) for axis in range(left)}
    rhs = {
        axis: lhs[partner]
        for axis, partner in zip(
            (*dims.rhs_batch, *dims.rhs_contracting), (*dims.lhs_batch, *dims.lhs_contracting), strict=True
        )
    }
    for axis in range(right):
        if axis not in rhs:
            rhs[axis] = next(letters)
    result = [lhs[axis] for axis in dims.lhs_batch]
    result += [lhs[axis] for axis in range(left) if axis not in {*dims.lhs_batch, *dims.lhs_contracting}]
    result += [rhs[axis] for axis in range(right) if axis not in {*dims.rhs_batch, *dims.rhs_contracting}]
    return f"{_in_order(lhs)},{_in_order(rhs)}->{''.join(result)}"


def _in_order(letters: dict[int, str]) -> str:
    return "".join(letters[axis] for axis in sorted(letters))


def _convolution(step: Step) -> Value:
    """Bring input, kernel and result into the op's order; holes in the input become interior padding."""
    instruction, dims = step.instruction, step.instruction.conv
    operands = step.arrays(2)
    if dims is None:
        raise step.wrong("does not say which dimensions are which")
    rank = len(dims.input_spatial) + 2
    plain = (
        instruction.batch_groups in (0, 1)
        and rank > 2
        and len(instruction.window) == rank - 2
        and all(
            d.low >= 0 and d.high >= 0 and d.stride > 0 and d.window_dilation > 0 for d in instruction.window
        )
    )
    if not plain:
        return opaque(step)
    x_order, kernel_order, back = _orders(step, dims, operands, rank)
    x = step.transposed(operands[0], x_order, "input")
    kernel = step.transposed(operands[1], kernel_order, "kernel")
    x = _with_holes(step, x, instruction.window)
    kernel = _unreversed(step, kernel, instruction.window)
    type = step.type
    laid_out = TensorType(type.dtype, tuple(type.shape[back.index(axis)] for axis in range(rank)))
    result = step.emit(
        "conv",
        (x, kernel),
        laid_out,
        "product",
        strides=tuple(d.stride for d in instruction.window),
        padding=tuple((d.low, d.high) for d in instruction.window),
        dilation=tuple(d.window_dilation for d in instruction.window),
        groups=max(instruction.feature_groups, 1),
    )
    return step.transposed(result, back, "")


def _orders(
    step: Step, dims: ConvDims, operands: tuple[NodeId, ...], rank: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    x_order = (dims.input_batch, dims.input_feature, *dims.input_spatial)
    kernel_order = (dims.kernel_output, dims.kernel_input, *dims.kernel_spatial)
    output_order = (dims.output_batch, dims.output_feature, *dims.output_spatial)
    ranks = (*(len(step.type_of(operand).shape) for operand in operands), len(step.type.shape))
    for order, of in zip((x_order, kernel_order, output_order), ranks, strict=True):
        step.axes(order, rank, "dimensions")
        if len(order) != rank or of != rank:
            raise step.wrong(f"does not name the {of} dimensions of its operands and result")
    return x_order, kernel_order, tuple(output_order.index(axis) for axis in range(rank))


def _with_holes(step: Step, x: NodeId, window: tuple[WindowDim, ...]) -> NodeId:
    holes = (0, 0, *(max(d.base_dilation - 1, 0) for d in window))
    if not any(holes):
        return x
    type = step.type_of(x)
    shape = tuple(size + max(size - 1, 0) * between for size, between in zip(type.shape, holes, strict=True))
    nothing = (0,) * len(shape)
    zero = step.scalar(0 if KIND_OF[type.dtype] == "int" else 0.0, type.dtype, "zero")
    return step.emit(
        "pad", (x, zero), TensorType(type.dtype, shape), "holes", low=nothing, high=nothing, interior=holes
    )


def _unreversed(step: Step, kernel: NodeId, window: tuple[WindowDim, ...]) -> NodeId:
    axes = tuple(axis for axis, d in enumerate(window, start=2) if d.reversal)
    if not axes:
        return kernel
    return step.emit("reverse", (kernel,), step.type_of(kernel), "reversed", axes=axes)


HANDLERS: Mapping[str, Callable[[Step], Value]] = MappingProxyType({"dot": _dot, "convolution": _convolution})
