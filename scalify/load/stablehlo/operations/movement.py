"""Operations that place elements, look them up, and multiply them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scalify.load.hlo.program import Shape, WindowDim
from scalify.load.stablehlo.attributes import conv_dims, dot_dims, gather_dims, rows
from scalify.load.stablehlo.reader import Handler, Step


def _reshape(step: Step) -> Sequence[int]:
    return (step.reshaped(step.operands[0], step.shape.dims),)


def _transpose(step: Step) -> Sequence[int]:
    return (step.transposed(step.operands[0], step.integers("permutation")),)


def _broadcast(step: Step) -> Sequence[int]:
    dims = step.integers("broadcast_dimensions")
    if step.shape_at(0).dims == step.shape.dims and dims == tuple(range(len(dims))):
        return step.operands
    return (step.add("broadcast", step.operands, dimensions=dims),)


def _slice(step: Step) -> Sequence[int]:
    names = ("start_indices", "limit_indices", "strides")
    return (step.add("slice", step.operands, slices=tuple(zip(*map(step.integers, names), strict=True))),)


def _pad(step: Step) -> Sequence[int]:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return (step.add("pad", step.operands, padding=tuple(zip(*map(step.integers, names), strict=True))),)


def _reverse(step: Step) -> Sequence[int]:
    return (step.add("reverse", step.operands, dimensions=step.integers("dimensions")),)


def _concatenate(step: Step) -> Sequence[int]:
    return (step.add("concatenate", step.operands, dimensions=(step.integer("dimension"),)),)


def _dynamic_slice(step: Step) -> Sequence[int]:
    return (step.add("dynamic-slice", step.operands, sizes=step.integers("slice_sizes")),)


def _dynamic_update_slice(step: Step) -> Sequence[int]:
    return (step.add("dynamic-update-slice", step.operands),)


def _dot(step: Step) -> Sequence[int]:
    return (step.add("dot", step.operands, dot=dot_dims(step.attribute("dot_dimension_numbers"))),)


def _gather(step: Step) -> Sequence[int]:
    dims, sizes = gather_dims(step.attribute("dimension_numbers")), step.integers("slice_sizes")
    return (step.add("gather", step.operands, gather=dims, sizes=sizes),)


def _convolution(step: Step) -> Sequence[int]:
    dims = conv_dims(step.attribute("dimension_numbers"))
    count = len(dims.kernel_spatial)
    ones, kernel = (1,) * count, step.shape_at(1).dims
    padding = step.attribute("padding")
    lows_highs = ((0, 0),) * count if padding is None else rows(padding)
    reversal = step.attribute("window_reversal")
    window = tuple(
        WindowDim(kernel[dim], stride, low, high, dilation, holes, turned)
        for dim, stride, (low, high), dilation, holes, turned in zip(
            dims.kernel_spatial,
            step.integers("window_strides", ones),
            lows_highs,
            step.integers("rhs_dilation", ones),
            step.integers("lhs_dilation", ones),
            [False] * count if reversal is None else map(bool, reversal),
            strict=True,
        )
    )
    return (
        step.add(
            "convolution",
            step.operands,
            conv=dims,
            window=window,
            feature_groups=step.integer("feature_group_count"),
            batch_groups=step.integer("batch_group_count"),
        ),
    )


def _top_k(step: Step) -> Sequence[int]:
    whole = step.add(
        "topk", step.operands, Shape("tuple", parts=step.shapes), k=step.integer("k"), largest=True
    )
    return step.listing.parts(whole, step.metadata)


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "stablehlo.reshape": _reshape,
        "stablehlo.transpose": _transpose,
        "stablehlo.broadcast_in_dim": _broadcast,
        "stablehlo.slice": _slice,
        "stablehlo.pad": _pad,
        "stablehlo.reverse": _reverse,
        "stablehlo.concatenate": _concatenate,
        "stablehlo.dynamic_slice": _dynamic_slice,
        "stablehlo.dynamic_update_slice": _dynamic_update_slice,
        "stablehlo.dot_general": _dot,
        "stablehlo.gather": _gather,
        "stablehlo.convolution": _convolution,
        "chlo.top_k": _top_k,
    }
)
