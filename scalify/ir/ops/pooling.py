"""Sliding windows without weights, over x [N,C,*S]."""

from scalify.ir.graph import TensorType
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.dtypes import as_float
from scalify.ir.ops.meaning import contraction as means
from scalify.ir.ops.shapes import per_dimension, shown, windowed
from scalify.ir.ops.spec import Call, define, mistake


def _pooled(call: Call) -> tuple[int, ...]:
    shape = call.shape()
    if len(shape) < 3:
        raise mistake(f"{call.op} of {shown(shape)}, not [N,C,*S]")
    kernel = per_dimension(call, "kernel", len(shape) - 2)
    dilation = (
        per_dimension(call, "dilation", len(kernel)) if "dilation" in call.attrs else (1,) * len(kernel)
    )
    return (*shape[:2], *windowed(call, shape[2:], kernel, dilation))


def _max_pool(call: Call) -> TensorType:
    """Padding never wins: a window of padding alone is refused."""
    shape = _pooled(call)
    for (low, high), size in zip(call.pairs("padding"), call.integers("kernel"), strict=True):
        if max(low, high) >= size:
            raise mistake(f"a window of max_pool, {size}, may lie wholly in the padding ({low}, {high})")
    return TensorType(call.operands[0].dtype, shape)


def _avg_pool(call: Call) -> TensorType:
    """``count_padding``: divide by the window's size, else by how many elements are not padding."""
    return TensorType(as_float(call.operands[0].dtype), _pooled(call))


_KERNEL = AttrSpec(kind="ints")
_STRIDES = AttrSpec(kind="ints")
_PADDING = AttrSpec(kind="pairs")

POOLING = (
    define(
        "max_pool",
        1,
        _max_pool,
        means.max_pool,
        kernel=_KERNEL,
        strides=_STRIDES,
        padding=_PADDING,
        dilation=AttrSpec(kind="ints"),
    ),
    define(
        "avg_pool",
        1,
        _avg_pool,
        means.avg_pool,
        kernel=_KERNEL,
        strides=_STRIDES,
        padding=_PADDING,
        count_padding=AttrSpec(kind="bool", default=True),
    ),
)
