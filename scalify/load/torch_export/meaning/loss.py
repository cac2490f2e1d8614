"""Losses: cross entropy kept whole, others written out."""

from math import prod
from types import MappingProxyType

from scalify.ir.graph import Attr, DType
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.operation import Meanings, Operation, Outcome, Unmodelled
from scalify.load.torch_export.scalars import kind

_REDUCTIONS = ("none", "mean", "sum")


def reduction(op: Operation) -> str:
    """What is made of the losses of all rows."""
    number = op.integer("reduction", 1)
    if not 0 <= number < len(_REDUCTIONS):
        raise Unmodelled(f"reduction number {number}")
    return _REDUCTIONS[number]


def _cross_entropy(op: Operation) -> Wire:
    """[N, C] and [N], [C] and [], and [N, C, d1, ...] with the classes moved last."""
    if op.has("weight") or op.number("label_smoothing", 0.0) != 0:
        raise Unmodelled("cross entropy with weights or smoothing")
    logits, target = op.tensor("self"), op.tensor("target")
    if kind(target.dtype) != "int":
        raise Unmodelled("cross entropy with probabilities")
    rank = len(logits.shape)
    if rank == 1:
        logits = op.emit.reshape(logits, (1, *logits.shape))
    elif rank > 2:
        logits = op.emit.transpose(logits, [0, *range(2, rank), 1])
        logits = op.emit.reshape(logits, (prod(logits.shape[:-1]), logits.shape[-1]))
    attrs: dict[str, Attr] = {"ignore_index": op.integer("ignore_index", -100), "reduction": reduction(op)}
    made = op.emit.elementwise(
        "cross_entropy", logits, op.emit.flat(target), dtype=op.result.dtype, attrs=attrs
    )
    return op.emit.reshape(made, op.result.shape)


def _nll_loss(op: Operation) -> Wire:
    """Minus the entry of the target's column; rows whose target is ignored count nothing."""
    log_probs, target = op.tensor("self"), op.tensor("target")
    if len(log_probs.shape) != 2:
        raise Unmodelled("a loss of more than rows")
    dtype = log_probs.dtype
    ignored, safe = _targets(op)
    column = op.emit.reshape(safe, (*safe.shape, 1))
    picked = op.emit.emit("take_along", log_probs, column, attrs={"axis": 1})
    loss = op.emit.elementwise("neg", op.emit.reshape(picked, target.shape), dtype=dtype)
    if op.has("weight"):
        loss = op.emit.elementwise("mul", loss, _weights(op, safe), dtype=dtype)
    rows = op.emit.elementwise("where", ignored, op.emit.constant(dtype, 0), loss, dtype=dtype)
    if reduction(op) == "none":
        return rows
    total = op.emit.reduce("sum", rows, (0,), False, dtype)
    if reduction(op) == "sum":
        return total
    return op.emit.elementwise("div", total, _counted(op, dtype), dtype=dtype)


def _targets(op: Operation) -> tuple[Wire, Wire]:
    """Which rows are ignored, and their targets with a class in place of those."""
    target = op.tensor("target")
    number = op.emit.constant(target.dtype, op.integer("ignore_index", -100))
    ignored = op.emit.elementwise("eq", target, number, dtype="bool")
    first = op.emit.constant(target.dtype, 0)
    return ignored, op.emit.elementwise("where", ignored, first, target, dtype=target.dtype)


def _weights(op: Operation, target: Wire) -> Wire:
    """What a row counts: the weight of its class."""
    return op.emit.emit("take", op.tensor("weight"), target, attrs={"axis": 0})


def _counted(op: Operation, dtype: DType) -> Wire:
    """How many rows are not ignored, or what they weigh."""
    if op.has("weight"):
        ignored, safe = _targets(op)
        nothing = op.emit.constant(dtype, 0)
        kept = op.emit.elementwise("where", ignored, nothing, _weights(op, safe), dtype=dtype)
    else:
        target = op.tensor("target")
        number = op.emit.constant(target.dtype, op.integer("ignore_index", -100))
        kept = op.emit.cast(op.emit.elementwise("ne", target, number, dtype="bool"), dtype)
    return op.emit.reduce("sum", kept, (0,), False, dtype)


def _nll_forward(op: Operation) -> Outcome:
    """With the number of rows that count, which PyTorch gives only where the loss is divided by it."""
    dtype = op.result.dtype
    mean = reduction(op) == "mean"
    return _nll_loss(op), _counted(op, dtype) if mean else op.emit.constant(dtype, 0)


def _mse(op: Operation) -> Wire:
    dtype = op.result.dtype
    distance = op.emit.elementwise("sub", op.tensor("self"), op.tensor("target"), dtype=dtype)
    squares = op.emit.elementwise("mul", distance, distance, dtype=dtype)
    if reduction(op) == "none":
        return squares
    return op.emit.reduce(reduction(op), squares, range(len(squares.shape)), False, dtype)


LOSS: Meanings = MappingProxyType({
    "aten.cross_entropy_loss": _cross_entropy,
    "aten.nll_loss": _nll_loss,
    "aten.nll_loss_nd": _nll_loss,
    "aten.nll_loss_forward": _nll_forward,
    "aten.mse_loss": _mse,
})  # fmt: skip
