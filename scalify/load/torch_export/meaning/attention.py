"""Scaled dot-product attention, kept whole, in the forms PyTorch gives it."""

from types import MappingProxyType

from scalify.ir.graph import Attr
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.meaning.arithmetic import truth
from scalify.load.torch_export.operation import Meanings, Operation, Outcome, Unmodelled
from scalify.load.torch_export.scalars import kind


def _attention(op: Operation) -> Wire:
    if op.number("dropout_p", 0.0) != 0:
        raise Unmodelled("attention with dropout")
    query, key, value = op.tensor("query"), op.tensor("key"), op.tensor("value")
    mask = op.maybe_tensor("attn_mask" if op.has("attn_mask") else "attn_bias")
    operands = [_headed(op, wire) for wire in (query, key, value)]
    operands = _same_batch(op, operands)
    if mask is not None:
        operands.append(_mask(op, mask, operands[0]))
    scale = float(op.number("scale", query.shape[-1] ** -0.5 if query.shape[-1] else 1.0))
    attrs: dict[str, Attr] = {"scale": scale, "causal": op.flag("is_causal", False)}
    made = op.emit.elementwise("attention", *operands, dtype=op.result.dtype, attrs=attrs)
    return op.emit.reshape(made, op.result.shape)


def _headed(op: Operation, wire: Wire) -> Wire:
    """With a dimension of heads: PyTorch takes [T, D] as one."""
    if len(wire.shape) < 2:
        raise Unmodelled("attention of vectors")
    return wire if len(wire.shape) > 2 else op.emit.reshape(wire, (1, *wire.shape))


def _same_batch(op: Operation, operands: list[Wire]) -> list[Wire]:
    """Leading dimensions broadcast, heads do not: they are read in groups."""
    rank = max(len(wire.shape) for wire in operands)
    padded = [op.emit.reshape(wire, (1,) * (rank - len(wire.shape)) + wire.shape) for wire in operands]
    lead = [max(sizes) for sizes in zip(*(wire.shape[:-3] for wire in padded), strict=True)]
    return [op.emit.broadcast(wire, (*lead, *wire.shape[-3:])) for wire in padded]


def _mask(op: Operation, mask: Wire, query: Wire) -> Wire:
    """Bool masks stay, others are added: as numbers of the query's category."""
    if mask.dtype == "bool" or kind(mask.dtype) == kind(query.dtype):
        return mask
    return truth(op, mask) if kind(mask.dtype) == "bool" else op.emit.cast(mask, query.dtype)


def _alone(op: Operation) -> Outcome:
    """The kernels' own names return bookkeeping for the backward pass beside the result."""
    return _attention(op), *(None for _ in op.call.results[1:])


_KERNELS = (
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_attention_math", "_scaled_dot_product_fused_attention_overrideable",
)  # fmt: skip

ATTENTION: Meanings = MappingProxyType({
    "aten.scaled_dot_product_attention": _attention,
    **{f"aten.{name}": _alone for name in _KERNELS},
})  # fmt: skip
