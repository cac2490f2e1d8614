"""Tensors made from nothing: constants, counters, draws."""

from types import MappingProxyType

import numpy as np

from scalify.ir.graph import TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.onnx.meaning.elementwise import applied
from scalify.load.onnx.model import ELEMENT_TYPES, damaged
from scalify.load.onnx.operation import Meanings, Operation, Unmodelled
from scalify.load.onnx.tensors import as_written, numbers
from scalify.load.torch_export.emit import Wire


def _constant(op: Operation) -> Wire:
    """In one of several attributes."""
    if op.given("value"):
        stored = op.stored("value")
        values = numbers(stored)
        if values is None:
            raise Unmodelled("a constant of 8-bit floats")
        return op.emit.array(values, stored.type)
    if op.given("value_int"):
        return op.emit.constant("i64", op.integer("value_int"))
    if op.given("value_float"):
        return op.emit.constant("f32", as_written(op.number("value_float")))
    if op.given("value_ints"):
        values = np.array(op.integers("value_ints"), np.int64)
        return op.emit.array(values, TensorType("i64", values.shape))
    given = op.attribute("value_floats")
    if not isinstance(given, tuple):
        raise Unmodelled("a constant of texts or a sparse one")
    return op.emit.array(np.array(given, np.float32), TensorType("f32", (len(given),)))


def _constant_of_shape(op: Operation) -> Wire:
    shape = op.known_integers(0)
    if not op.given("value"):
        return op.emit.constant("f32", 0.0, shape)
    stored = op.stored("value")
    values = numbers(stored)
    if values is None or values.size != 1 or KIND_OF[stored.type.dtype] == "complex":
        raise damaged(f"the value of {op.what} is not one number")
    return op.emit.broadcast(op.emit.array(values.reshape(()), TensorType(stored.type.dtype, ())), shape)


def _range(op: Operation) -> Wire:
    """start + step * 0, 1, 2, ...; how many there are has to be known."""
    wire = op.tensor(0)
    start, limit, step = (float(op.known(place).reshape(())) for place in range(3))
    if not step:
        raise damaged(f"{op.what} has a step of zero")
    count = max(int(np.ceil((limit - start) / step)), 0)
    counter = op.emit.emit("iota", declared=TensorType(wire.dtype, (count,)), attrs={"axis": 0})
    if step != 1:
        counter = applied(op, "mul", counter, op.scalar(2))
    return applied(op, "add", counter, op.scalar(0)) if start else counter


def _eye_like(op: Operation) -> Wire:
    wire = op.tensor()
    dtype = ELEMENT_TYPES.get(op.integer("dtype")) if op.given("dtype") else wire.dtype
    if len(wire.shape) != 2 or dtype is None:
        raise Unmodelled("a diagonal of another type")
    rows = op.emit.emit("iota", declared=TensorType("i64", wire.shape), attrs={"axis": 0})
    columns = op.emit.emit("iota", declared=TensorType("i64", wire.shape), attrs={"axis": 1})
    shifted = applied(op, "add", rows, op.emit.constant("i64", op.integer("k", 0)))
    return op.emit.cast(applied(op, "eq", shifted, columns, dtype="bool"), dtype)


CREATION: Meanings = MappingProxyType({
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "EyeLike": _eye_like,
})  # fmt: skip
