"""Convolutions and pooling."""

from types import MappingProxyType

from scalify.ir.graph import Attr
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.operation import Meanings, Operation, Unmodelled


def _spatial(op: Operation, name: str, rank: int, default: int) -> tuple[int, ...]:
    """One number for every spatial dimension, or one number for all."""
    given = op.integers(name, (default,)) or (default,)
    if len(given) not in (1, rank):
        raise damaged(f"{op.call.name} has {len(given)} numbers as {name} for {rank} dimensions")
    return given * rank if len(given) == 1 else given


def _conv(op: Operation) -> Wire:
    wire = op.tensor("input")
    weight = op.tensor("weight")
    rank = len(weight.shape) - 2
    if rank < 1:
        raise damaged(f"{op.call.name} has a kernel of {len(weight.shape)} dimensions")
    if op.flag("transposed", False):
        raise Unmodelled("a transposed convolution")
    single = len(wire.shape) == rank + 1
    batch = op.emit.reshape(wire, (1, *wire.shape)) if single else wire
    dilation = _spatial(op, "dilation", rank, 1)
    attrs: dict[str, Attr] = {
        "strides": _spatial(op, "stride", rank, 1),
        "padding": _padding(op, rank, weight.shape[2:], dilation),
        "dilation": dilation,
        "groups": op.integer("groups", 1),
    }
    made = op.emit.elementwise("conv", batch, weight, dtype=op.result.dtype, attrs=attrs)
    bias = op.maybe_tensor("bias")
    if bias is not None:
        column = op.emit.reshape(bias, (bias.shape[0], *(1 for _ in range(rank))))
        made = op.emit.elementwise("add", made, column, dtype=op.result.dtype)
    return op.emit.reshape(made, op.result.shape)


def _padding(
    op: Operation, rank: int, kernel: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    if not isinstance(op.call.arguments.get("padding"), str):
        return tuple((width, width) for width in _spatial(op, "padding", rank, 0))
    if op.text("padding", "valid") == "valid":
        return ((0, 0),) * rank
    totals = [step * (size - 1) for step, size in zip(dilation, kernel, strict=True)]
    return tuple((total // 2, total - total // 2) for total in totals)


CONVOLUTION: Meanings = MappingProxyType({
    "aten.conv1d": _conv,
    "aten.conv2d": _conv,
    "aten.conv3d": _conv,
    "aten.convolution": _conv,
})  # fmt: skip
