"""Products: dot_general and convolution."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scalify.capture.jax.reader import Call, Handler, whole
from scalify.load.hlo.program import ConvDims, DotDims, WindowDim


def _dot_general(call: Call) -> Sequence[int]:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = call.params["dimension_numbers"]
    dims = DotDims(*map(whole, (lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)))
    return (call.add("dot", call.operands, dot=dims),)


def _conv(call: Call) -> Sequence[int]:
    params, numbers = call.params, call.params["dimension_numbers"]
    lhs, rhs, out = map(whole, (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec))
    kernel = call.shape_at(1).dims
    window = tuple(
        WindowDim(
            size=kernel[dim],
            stride=int(stride),
            low=int(low),
            high=int(high),
            window_dilation=int(dilation),
            base_dilation=int(holes),
        )
        for dim, stride, (low, high), dilation, holes in zip(
            rhs[2:],
            params["window_strides"],
            params["padding"],
            params["rhs_dilation"],
            params["lhs_dilation"],
            strict=True,
        )
    )
    dims = ConvDims(lhs[0], lhs[1], lhs[2:], rhs[1], rhs[0], rhs[2:], out[0], out[1], out[2:])
    return (
        call.add(
            "convolution",
            call.operands,
            conv=dims,
            window=window,
            feature_groups=int(params["feature_group_count"]),
            batch_groups=int(params["batch_group_count"]),
        ),
    )


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {"dot_general": _dot_general, "conv_general_dilated": _conv}
)
