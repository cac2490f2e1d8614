"""Reductions, running sums, softmax."""

from collections.abc import Sequence
from math import prod
from types import MappingProxyType

from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.meaning.arithmetic import truth
from scalify.load.torch_export.operation import Meaning, Meanings, Operation, Outcome, Unmodelled
from scalify.load.torch_export.scalars import kind


def _axes(op: Operation, wire: Wire) -> tuple[int, ...]:
    return op.axes("dim", len(wire.shape))


def _reduce(combine: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        dtype = op.result.dtype
        wire = op.tensor("self")
        source = wire if kind(wire.dtype) == kind(dtype) else op.emit.cast(wire, dtype)
        return op.emit.reduce(combine, source, _axes(op, wire), op.flag("keepdim", False), dtype)

    return meaning


def _test(combine: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        wire = truth(op, op.tensor("self"))
        return op.emit.reduce(combine, wire, _axes(op, wire), op.flag("keepdim", False), "bool")

    return meaning


def _extreme(combine: str, where: str) -> Meaning:
    """Over one dimension, values come with their places; over all or several, alone."""

    def meaning(op: Operation) -> Outcome:
        wire, keepdims = op.tensor("self"), op.flag("keepdim", False)
        values = op.emit.reduce(combine, wire, _axes(op, wire), keepdims, wire.dtype)
        if op.overload != "dim":
            return values
        axis = op.axis(op.integer("dim"), len(wire.shape))
        return values, _place(op, where, wire, axis, keepdims)

    return meaning


def _place(op: Operation, name: str, wire: Wire, axis: int, keepdims: bool) -> Wire:
    return op.emit.emit(name, wire, attrs={"axis": axis, "keepdims": keepdims})


def _arg(name: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        wire, keepdims = op.tensor("self"), op.flag("keepdim", False)
        if not op.has("dim"):
            found = _place(op, name, op.emit.flat(wire), 0, False)
            return op.emit.reshape(found, op.result.shape)
        return _place(op, name, wire, op.axis(op.integer("dim"), len(wire.shape)), keepdims)

    return meaning


def _running(name: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        dtype = op.result.dtype
        wire = op.tensor("self")
        source = wire if kind(wire.dtype) == kind(dtype) else op.emit.cast(wire, dtype)
        if not wire.shape:
            return source
        axis = op.axis(op.integer("dim"), len(wire.shape))
        return op.emit.elementwise(name, source, dtype=dtype, attrs={"axis": axis})

    return meaning


def _softmax(name: str) -> Meaning:
    """In the type of the result, as PyTorch computes it where a type is asked for."""

    def meaning(op: Operation) -> Wire:
        wire = op.emit.cast(op.tensor("self"), op.result.dtype)
        return op.emit.emit(name, wire, attrs={"axis": op.axis(op.integer("dim"), len(wire.shape))})

    return meaning


def _logsumexp(op: Operation) -> Wire:
    wire = op.emit.cast(op.tensor("self"), op.result.dtype)
    return op.emit.emit(
        "logsumexp",
        wire,
        attrs={"axes": tuple(sorted(_axes(op, wire))), "keepdims": op.flag("keepdim", False)},
    )


def variance(op: Operation, wire: Wire, axes: Sequence[int], keepdims: bool, correction: float) -> Wire:
    """The mean square distance from the mean, over n - correction."""
    dtype = wire.dtype
    mean = op.emit.reduce("mean", wire, axes, True, dtype)
    distance = op.emit.elementwise("sub", wire, mean, dtype=dtype)
    squares = op.emit.elementwise("mul", distance, distance, dtype=dtype)
    if correction == 0:
        return op.emit.reduce("mean", squares, axes, keepdims, dtype)
    count = prod(wire.shape[axis] for axis in axes) - correction
    if count <= 0:
        raise Unmodelled("the variance of too few numbers")
    total = op.emit.reduce("sum", squares, axes, keepdims, dtype)
    return op.emit.elementwise("div", total, op.emit.constant(dtype, count), dtype=dtype)


def _correction(op: Operation) -> float:
    if "unbiased" in op.call.arguments:
        return 1 if op.flag("unbiased", True) else 0
    return op.number("correction", 1)


def _var(op: Operation) -> Wire:
    wire = op.tensor("self")
    return variance(op, wire, _axes(op, wire), op.flag("keepdim", False), _correction(op))


def _std(op: Operation) -> Wire:
    return op.emit.elementwise("sqrt", _var(op), dtype=op.result.dtype)


def _var_mean(op: Operation) -> Sequence[Wire]:
    wire = op.tensor("self")
    return _var(op), op.emit.reduce("mean", wire, _axes(op, wire), op.flag("keepdim", False), wire.dtype)


def _norm(op: Operation) -> Wire:
    """The Euclidean norm, and the sum of magnitudes."""
    order = op.number("ord", op.number("p", 2))
    wire, dtype = op.tensor("self"), op.result.dtype
    axes, keepdims = _axes(op, wire), op.flag("keepdim", False)
    source = op.emit.cast(wire, dtype)
    if order == 1:
        return op.emit.reduce("sum", op.emit.elementwise("abs", source, dtype=dtype), axes, keepdims, dtype)
    if order != 2:
        raise Unmodelled(f"the norm of order {order}")
    total = op.emit.reduce(
        "sum", op.emit.elementwise("mul", source, source, dtype=dtype), axes, keepdims, dtype
    )
    return op.emit.elementwise("sqrt", total, dtype=dtype)


def _diff(op: Operation) -> Wire:
    """Differences of neighbours, with what is given stood before and after."""
    if op.integer("n", 1) != 1:
        raise Unmodelled("differences of differences")
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim", -1), len(wire.shape))
    ends = (op.maybe_tensor("prepend"), wire, op.maybe_tensor("append"))
    line = op.emit.concat([part for part in ends if part is not None], axis)
    size = line.shape[axis]
    later, earlier = op.emit.slice(line, axis, 1, size), op.emit.slice(line, axis, 0, size - 1)
    name = "xor" if wire.dtype == "bool" else "sub"
    return op.emit.elementwise(name, later, earlier, dtype=wire.dtype)


REDUCTION: Meanings = MappingProxyType({
    "aten.sum": _reduce("sum"),
    "aten.mean": _reduce("mean"),
    "aten.prod": _reduce("prod"),
    "aten.amax": _reduce("max"),
    "aten.amin": _reduce("min"),
    "aten.max": _extreme("max", "argmax"),
    "aten.min": _extreme("min", "argmin"),
    "aten.any": _test("any"),
    "aten.all": _test("all"),
    "aten.argmax": _arg("argmax"),
    "aten.argmin": _arg("argmin"),
    "aten.cumsum": _running("cumsum"),
    "aten.cumprod": _running("cumprod"),
    "aten.softmax": _softmax("softmax"),
    "aten._softmax": _softmax("softmax"),
    "aten._safe_softmax": _softmax("softmax"),
    "aten.log_softmax": _softmax("log_softmax"),
    "aten._log_softmax": _softmax("log_softmax"),
    "aten.logsumexp": _logsumexp,
    "aten.var": _var,
    "aten.std": _std,
    "aten.var_mean": _var_mean,
    "aten.linalg_vector_norm": _norm,
    "aten.norm": _norm,
    "aten.diff": _diff,
})  # fmt: skip
