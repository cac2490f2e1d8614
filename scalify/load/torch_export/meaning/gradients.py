"""Operators of backward passes that are not written in terms of others when a model is captured.

The gradient of a look-up goes back to where it came from: rows that were read several times get a sum.
"""

from types import MappingProxyType

from scalify.ir.graph import Attr
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.meaning.loss import reduction
from scalify.load.torch_export.operation import Meanings, Operation, Unmodelled


def _nll_loss_backward(op: Operation) -> Wire:
    """Minus the row's share in the column of its target, 0 elsewhere and where the target is ignored."""
    if op.has("weight"):
        raise Unmodelled("a loss with weights")
    log_probs, target, share = op.tensor("self"), op.tensor("target"), op.tensor("grad_output")
    if len(log_probs.shape) != 2:
        raise Unmodelled("a loss of more than rows")
    dtype, classes = op.result.dtype, log_probs.shape[1]
    hits = op.emit.emit(
        "one_hot", _counted(op, target, classes), declared=op.result, attrs={"classes": classes}
    )
    if reduction(op) == "mean":
        share = op.emit.elementwise("div", share, op.tensor("total_weight"), dtype=dtype)
    share = op.emit.elementwise("neg", share, dtype=dtype)
    column = op.emit.reshape(share, (*share.shape, 1)) if share.shape else share
    return op.emit.elementwise("mul", hits, column, dtype=dtype)


def _counted(op: Operation, target: Wire, classes: int) -> Wire:
    """Targets, those that are ignored out of the classes."""
    number = op.integer("ignore_index", -100)
    if not 0 <= number < classes:
        return target
    ignored = op.emit.elementwise("eq", target, op.emit.constant(target.dtype, number), dtype="bool")
    outside = op.emit.constant(target.dtype, -1)
    return op.emit.elementwise("where", ignored, outside, target, dtype=target.dtype)


def _embedding_backward(op: Operation) -> Wire:
    """Rows of the gradient added up at the indices; the padding's row learns nothing."""
    if op.flag("scale_grad_by_freq", False):
        raise Unmodelled("gradients scaled by how often a row was read")
    grad, indices = op.tensor("grad_output"), op.tensor("indices")
    dtype, padding = op.result.dtype, op.integer("padding_idx", -1)
    if padding >= 0:
        number = op.emit.constant(indices.dtype, padding)
        ignored = op.emit.elementwise("eq", indices, number, dtype="bool")
        column = op.emit.reshape(ignored, (*ignored.shape, 1))
        grad = op.emit.elementwise("where", column, op.emit.constant(dtype, 0), grad, dtype=dtype)
    nothing = op.emit.constant(dtype, 0, op.result.shape)
    attrs: dict[str, Attr] = {"mode": "add"}
    return op.emit.emit("index_put", nothing, op.emit.cast(grad, dtype), indices, attrs=attrs)


GRADIENTS: Meanings = MappingProxyType({
    "aten.nll_loss_backward": _nll_loss_backward,
    "aten.embedding_dense_backward": _embedding_backward,
})  # fmt: skip
