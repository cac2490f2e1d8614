"""Tensors made from nothing: counters, constants, random draws."""

from types import MappingProxyType

from scalify.ir.graph import Attr, TensorType
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.operation import Meaning, Meanings, Number, Operation, Unmodelled
from scalify.load.torch_export.scalars import kind

UNINITIALISED = "uninitialised"
"""What an opaque node is called that stands for memory of which nobody knows what it holds."""


def _arange(op: Operation) -> Wire:
    """start + step * 0, 1, 2, ..."""
    start = op.number("start") if op.has("start") else None
    return _progression(op, op.result, start, op.number("step", 1))


def _progression(op: Operation, type_: TensorType, start: Number | None, step: Number) -> Wire:
    """A start that is stated is added even where it is zero: on another rank it may not be."""
    counter = op.emit.emit("iota", declared=type_, attrs={"axis": 0})
    if step != 1:
        counter = op.emit.elementwise("mul", counter, op.emit.constant(type_.dtype, step), dtype=type_.dtype)
    if start is not None:
        counter = op.emit.elementwise("add", counter, op.emit.constant(type_.dtype, start), dtype=type_.dtype)
    return counter


def _linspace(op: Operation) -> Wire:
    type_ = op.result
    count = type_.shape[0]
    start, end = op.number("start"), op.number("end")
    if kind(type_.dtype) != "float":
        raise Unmodelled("a rounded linspace")
    return _progression(op, type_, start, (end - start) / (count - 1) if count > 1 else 1)


def _filled(number: Number | None) -> Meaning:
    """The same number everywhere; None takes it from the call."""

    def meaning(op: Operation) -> Wire:
        type_ = op.result
        if number is not None:
            return op.emit.constant(type_.dtype, number, type_.shape)
        for name in ("fill_value", "value"):
            if op.is_tensor(name):
                return op.emit.broadcast(op.emit.cast(op.tensor(name), type_.dtype), type_.shape)
        return op.emit.constant(
            type_.dtype, op.number("fill_value" if op.has("fill_value") else "value"), type_.shape
        )

    return meaning


def _scalar(op: Operation) -> Wire:
    return op.emit.constant(op.result.dtype, op.number("s"))


def _eye(op: Operation) -> Wire:
    return op.emit.cast(_diagonal(op), op.result.dtype)


def _diagonal(op: Operation) -> Wire:
    """Where row and column are the same."""
    shape = op.result.shape
    rows = op.emit.emit("iota", declared=TensorType("i64", shape), attrs={"axis": 0})
    columns = op.emit.emit("iota", declared=TensorType("i64", shape), attrs={"axis": 1})
    return op.emit.elementwise("eq", rows, columns, dtype="bool")


def _fill_diagonal(op: Operation) -> Wire:
    wire = op.tensor("self")
    if len(wire.shape) != 2 or op.flag("wrap", False):
        raise Unmodelled("a diagonal of more than two dimensions, or one that starts again")
    number = op.emit.constant(wire.dtype, op.number("fill_value"))
    return op.emit.elementwise("where", _diagonal(op), number, wire, dtype=wire.dtype)


def _random(distribution: str) -> Meaning:
    """A draw of its own, which equals no other."""

    def meaning(op: Operation) -> Wire:
        return op.emit.emit(
            "random",
            declared=op.result,
            attrs={"key": f"{op.program.origin}:{op.call.name}", "kind": distribution},
        )

    return meaning


def _uninitialised(op: Operation) -> Wire:
    """Whatever memory held before: of every allocation its own."""
    attrs: dict[str, Attr] = {"target": UNINITIALISED, "config": f"{op.program.origin}:{op.call.name}"}
    return op.emit.emit("opaque", declared=op.result, attrs=attrs)


_ALLOCATIONS = (
    "empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted",
)  # fmt: skip

CREATION: Meanings = MappingProxyType({
    **{f"aten.{name}": _uninitialised for name in _ALLOCATIONS},
    "aten.arange": _arange,
    "aten.linspace": _linspace,
    "aten.zeros": _filled(0),
    "aten.zeros_like": _filled(0),
    "aten.new_zeros": _filled(0),
    "aten.zero": _filled(0),
    "aten.ones": _filled(1),
    "aten.ones_like": _filled(1),
    "aten.new_ones": _filled(1),
    "aten.full": _filled(None),
    "aten.full_like": _filled(None),
    "aten.new_full": _filled(None),
    "aten.fill": _filled(None),
    "aten.scalar_tensor": _scalar,
    "aten.eye": _eye,
    "aten.fill_diagonal": _fill_diagonal,
    "aten.rand": _random("uniform"),
    "aten.rand_like": _random("uniform"),
    "aten.randn": _random("normal"),
    "aten.randn_like": _random("normal"),
})  # fmt: skip
