"""Operators that combine elements along dimensions."""

from collections.abc import Sequence
from types import MappingProxyType

from scalify.ir.graph import Attr
from scalify.load.onnx.meaning.elementwise import applied
from scalify.load.onnx.model import damaged
from scalify.load.onnx.operation import Meaning, Meanings, Operation, Unmodelled
from scalify.load.torch_export.emit import Wire

AXES_AS_INPUT = 18


def _axes(op: Operation, rank: int) -> tuple[int, ...] | None:
    """Dimensions from an input or, of older versions, an attribute; None: nothing is to be done."""
    as_input = op.opset >= AXES_AS_INPUT or op.node.op == "ReduceSum"
    read = op.known_integers(1) if as_input and op.has(1) else ()
    given = read if as_input else op.integers("axes", ())
    if given:
        return op.axes(given, rank)
    return None if op.integer("noop_with_empty_axes", 0) else tuple(range(rank))


def _reduce(kind: str, before: str = "", after: str = "") -> Meaning:
    def meaning(op: Operation) -> Wire:
        wire = op.tensor()
        axes = _axes(op, len(wire.shape))
        if axes is None and (before or after):
            raise Unmodelled("releases of ONNX differ in what is left of it without dimensions")
        if before:
            wire = applied(op, before, wire)
        if axes is not None:
            wire = op.emit.reduce(kind, wire, axes, bool(op.integer("keepdims", 1)), wire.dtype)
        return applied(op, after, wire) if after else wire

    return meaning


def _log_sum_exp(op: Operation) -> Wire:
    wire = op.tensor()
    axes = _axes(op, len(wire.shape))
    if axes is None:
        return wire
    attrs: dict[str, Attr] = {"axes": axes, "keepdims": bool(op.integer("keepdims", 1))}
    return op.emit.emit("logsumexp", wire, attrs=attrs)


def _extreme(name: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        if op.integer("select_last_index", 0):
            raise Unmodelled("the last of equals")
        wire = op.tensor()
        attrs: dict[str, Attr] = {
            "axis": op.axis(op.integer("axis", 0), len(wire.shape)),
            "keepdims": bool(op.integer("keepdims", 1)),
        }
        return op.emit.emit(name, wire, attrs=attrs)

    return meaning


def _scan(op: Operation) -> Wire:
    wire = op.tensor()
    if op.integer("exclusive", 0):
        raise Unmodelled("a sum without the element itself")
    axis = op.axis(int(op.known(1).reshape(())), len(wire.shape))
    backwards: dict[str, Attr] = {"axes": (axis,)}
    is_reverse = op.integer("reverse", 0)
    if is_reverse:
        wire = op.emit.emit("reverse", wire, attrs=backwards)
    made = op.emit.elementwise("cumsum", wire, dtype=wire.dtype, attrs={"axis": axis})
    return op.emit.emit("reverse", made, attrs=backwards) if is_reverse else made


def _softmax(name: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        wire = op.tensor()
        return op.emit.emit(name, wire, attrs={"axis": op.axis(op.integer("axis", -1), len(wire.shape))})

    return meaning


def _topk(op: Operation) -> Sequence[Wire]:
    """Sorted whether or not that was asked for: unsorted ones have no order that could be relied on."""
    wire = op.tensor()
    count = op.known_integers(1)
    if len(count) != 1:
        raise damaged(f"{op.what} has {len(count)} numbers as k")
    if not op.integer("sorted", 1):
        raise Unmodelled("the best in any order")
    attrs: dict[str, Attr] = {
        "k": count[0],
        "axis": op.axis(op.integer("axis", -1), len(wire.shape)),
        "largest": bool(op.integer("largest", 1)),
    }
    return op.emit.emit("topk_values", wire, attrs=attrs), op.emit.emit("topk_indices", wire, attrs=attrs)


REDUCTION: Meanings = MappingProxyType({
    "ReduceSum": _reduce("sum"),
    "ReduceMean": _reduce("mean"),
    "ReduceMax": _reduce("max"),
    "ReduceMin": _reduce("min"),
    "ReduceProd": _reduce("prod"),
    "ReduceSumSquare": _reduce("sum", before="square"),
    "ReduceL1": _reduce("sum", before="abs"),
    "ReduceL2": _reduce("sum", before="square", after="sqrt"),
    "ReduceLogSum": _reduce("sum", after="log"),
    "ReduceLogSumExp": _log_sum_exp,
    "ArgMax": _extreme("argmax"),
    "ArgMin": _extreme("argmin"),
    "CumSum": _scan,
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
    "TopK": _topk,
})  # fmt: skip
