"""Attention and rotary embeddings, as ONNX has them since opset 23."""

from types import MappingProxyType

from scalify.ir.graph import Attr
from scalify.load.onnx.meaning.elementwise import applied
from scalify.load.onnx.model import damaged
from scalify.load.onnx.operation import Meanings, Operation, Outcome, Unmodelled
from scalify.load.onnx.tensors import as_written
from scalify.load.torch_export.emit import Wire


def _attention(op: Operation) -> Outcome:
    """[B, H, T, D], or [B, T, H * D] with the numbers of heads stated; a cache is put before keys."""
    _refuse(op)
    queries = op.integer("q_num_heads", 0)
    q, k, v = (
        _headed(op, op.tensor(place), queries if place == 0 else op.integer("kv_num_heads", 0))
        for place in range(3)
    )
    if op.has(4) != op.has(5):
        raise damaged(f"{op.what} has one half of a cache")
    if op.has(4):
        k, v = op.emit.concat((op.tensor(4), k), 2), op.emit.concat((op.tensor(5), v), 2)
    operands = [q, k, v]
    if op.has(3):
        mask = op.tensor(3)
        if mask.shape[-1:] != k.shape[-2:-1]:
            raise Unmodelled("a mask that covers some keys only")
        operands.append(mask)
    scale = as_written(op.number("scale")) if op.given("scale") else q.shape[-1] ** -0.5
    attrs: dict[str, Attr] = {"scale": scale, "causal": bool(op.integer("is_causal", 0))}
    made = op.emit.elementwise("attention", *operands, dtype=q.dtype, attrs=attrs)
    return _joined(op, made, len(op.tensor(0).shape)), k, v


def _refuse(op: Operation) -> None:
    if op.number("softcap", 0.0):
        raise Unmodelled("scores that are capped")
    if op.has(6) or max(op.integer("left_window_size", -1), op.integer("right_window_size", -1)) >= 0:
        raise Unmodelled("attention to a part of the keys")
    if op.integer("is_causal", 0) and op.has(4):
        raise Unmodelled("causal attention with a cache: releases of ONNX differ")
    if op.result_of(3):
        raise Unmodelled("the scores beside the result")


def _headed(op: Operation, wire: Wire, heads: int) -> Wire:
    if len(wire.shape) == 4:
        return wire
    if len(wire.shape) != 3 or heads < 1 or wire.shape[2] % heads:
        raise damaged(f"{op.what} of {list(wire.shape)} with {heads} heads")
    batch, length, width = wire.shape
    return op.emit.transpose(op.emit.reshape(wire, (batch, length, heads, width // heads)), (0, 2, 1, 3))


def _joined(op: Operation, wire: Wire, rank: int) -> Wire:
    if rank == 4:
        return wire
    batch, heads, length, width = wire.shape
    return op.emit.reshape(op.emit.transpose(wire, (0, 2, 1, 3)), (batch, length, heads * width))


def _rotary_embedding(op: Operation) -> Wire:
    """Pairs are turned: element i with i + half, or neighbours where they are interleaved."""
    given = op.tensor(0)
    x = _headed(op, given, op.integer("num_heads", 0))
    width = op.integer("rotary_embedding_dim", 0) or x.shape[3]
    if width % 2 or not 0 < width <= x.shape[3]:
        raise damaged(f"{op.what} turns {width} of {x.shape[3]}")
    cos, sin = _tables(op, 1, width // 2), _tables(op, 2, width // 2)
    turned = op.emit.slice(x, 3, 0, width)
    if op.integer("interleaved", 0):
        first, second = (op.emit.slice(turned, 3, start, width, 2) for start in (0, 1))
    else:
        first, second = op.emit.slice(turned, 3, 0, width // 2), op.emit.slice(turned, 3, width // 2, width)
    real = applied(op, "sub", applied(op, "mul", cos, first), applied(op, "mul", sin, second))
    imaginary = applied(op, "add", applied(op, "mul", sin, first), applied(op, "mul", cos, second))
    if op.integer("interleaved", 0):
        pairs = [op.emit.reshape(part, (*part.shape, 1)) for part in (real, imaginary)]
        made = op.emit.reshape(op.emit.concat(pairs, 4), turned.shape)
    else:
        made = op.emit.concat((real, imaginary), 3)
    if width < x.shape[3]:
        made = op.emit.concat((made, op.emit.slice(x, 3, width, x.shape[3])), 3)
    return _joined(op, made, len(given.shape))


def _tables(op: Operation, place: int, half: int) -> Wire:
    """Cosines or sines [B, 1, T, half], for the positions that are stated."""
    table = op.tensor(place)
    if op.has(3):
        op.note("position ids of RotaryEmbedding are not negative")
        table = op.emit.emit("take", table, op.tensor(3), attrs={"axis": 0})
    if len(table.shape) != 3 or table.shape[2] != half:
        raise damaged(f"{op.what} has a table of {list(table.shape)} for {half} pairs")
    return op.emit.reshape(table, (table.shape[0], 1, *table.shape[1:]))


ATTENTION: Meanings = MappingProxyType({
    "Attention": _attention,
    "RotaryEmbedding": _rotary_embedding,
})  # fmt: skip
