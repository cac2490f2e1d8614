"""Makes graph nodes, and knows the values of those that follow from constants alone.

Exporters compute shapes by nodes (``Shape``, ``Gather``, ``Concat``). What such nodes give is needed to read
others: the target of a reshape, the bounds of a slice. Two kinds of value are said more plainly than the file
says them, because provers read them better so: one number everywhere is a constant, and a causal mask (one
number on and below a diagonal, another above it) is a comparison of rows with columns, whether the file
computes it or an exporter has stored it as a table.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from scalify.errors import ScalifyError
from scalify.ir.graph import Attr, NodeId, TensorType
from scalify.ir.ops import OPS
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.meaning.storage import stored
from scalify.ir.ops.spec import Call
from scalify.load.onnx.model import Array
from scalify.load.onnx.tensors import constant_attrs
from scalify.load.torch_export.emit import Emitter, Wire

KNOWN_ELEMENTS = 2**18
TABLE_ELEMENTS = 2**26


class Folding(Emitter):
    """An emitter that remembers small values."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[NodeId, Array] = {}

    def emit(
        self,
        op: str,
        *operands: Wire,
        declared: TensorType | None = None,
        attrs: Mapping[str, Attr] | None = None,
    ) -> Wire:
        """One node; its value too, where it is small and its operands are known."""
        wire = super().emit(op, *operands, declared=declared, attrs=attrs)
        value = self._value(wire, operands)
        if value is None:
            return wire
        plain = self._plainly(value, wire.type) if operands and op != "broadcast" else None
        self._known[wire.id if plain is None else plain.id] = value
        return wire if plain is None else plain

    def _value(self, wire: Wire, operands: tuple[Wire, ...]) -> Array | None:
        meaning = OPS[self.nodes[wire.id].op].meaning
        if meaning is None or KIND_OF[wire.dtype] == "complex" or prod(wire.shape) > KNOWN_ELEMENTS:
            return None
        if not all(operand.id in self._known for operand in operands):
            return None
        node = self.nodes[wire.id]
        if "digest" in node.attrs:
            return None
        call = Call(
            op=node.op, operands=tuple(w.type for w in operands), attrs=node.attrs, declared=node.type
        )
        try:
            with np.errstate(all="ignore"):
                return stored(np.asarray(meaning(call, [self._known[w.id] for w in operands])), wire.dtype)
        except ScalifyError:
            return None  # an index out of range: whoever needs the value is told that it is not known

    def known(self, wire: Wire) -> Array | None:
        """The value of a node that follows from constants."""
        return self._known.get(wire.id)

    def array(self, values: Array, type_: TensorType) -> Wire:
        """A constant."""
        mask = self._mask(values, type_) if values.size <= TABLE_ELEMENTS else None
        if mask is not None:
            return mask
        return self.emit("constant", declared=type_, attrs=constant_attrs(values, type_.dtype))

    def _plainly(self, value: Array, type_: TensorType) -> Wire | None:
        """What is computed from constants, said otherwise, if it is one of two kinds."""
        if value.size and KIND_OF[type_.dtype] != "int" and bool((value == value.flat[0]).all()):
            number = value.flat[0].item()
            return super().emit("constant", declared=type_, attrs={"data": (number,)})
        return self._mask(value, type_)

    def _mask(self, value: Array, type_: TensorType) -> Wire | None:
        """A table that has one number up to a diagonal and another above it, as a choice between the two."""
        found = _diagonal(value)
        if found is None or KIND_OF[type_.dtype] == "complex":
            return None
        offset, below, above = found
        *lead, rows, columns = type_.shape
        square = (rows, columns)
        row = super().emit("iota", declared=TensorType("i64", square), attrs={"axis": 0})
        column = super().emit("iota", declared=TensorType("i64", square), attrs={"axis": 1})
        if offset:
            row = super().emit("add", row, self.constant("i64", offset))
        inside = super().emit("le", column, row)
        if type_.dtype == "bool":
            inside = inside if below else super().emit("not", inside)
        else:
            numbers = [super(Folding, self).constant(type_.dtype, one) for one in (below, above)]
            inside = super().emit("where", inside, *numbers)
        return self.reshape(inside, (*lead, *square))

    def non_negative(self, wire: Wire) -> bool:
        """Whether a value plainly has no negative element."""
        value = self.known(wire)
        if value is not None:
            return bool((value >= 0).all())
        node = self.nodes[wire.id]
        if node.op in ("iota", "argmax", "argmin", "topk_indices") or wire.dtype.startswith("u"):
            return True
        if node.op not in ("reshape", "broadcast", "transpose", "slice", "concat", "cast"):
            return False
        return all(self.nodes[at].op == "iota" for at in node.operands)


def _diagonal(value: Array) -> tuple[int, float, float] | None:
    """(offset, number where column <= row + offset, number elsewhere) of a table that is a causal mask."""
    if value.ndim < 2 or value.size < 4 or prod(value.shape[:-2]) != 1 or min(value.shape[-2:]) < 2:
        return None
    table = value.reshape(value.shape[-2:])
    below, above = table[-1, 0], table[0, -1]
    if below == above:
        return None
    offset = int((table[0] == below).sum()) - 1
    rows, columns = (np.arange(size) for size in table.shape)
    expected = np.where(columns <= rows[:, None] + offset, below, above)
    return (offset, below.item(), above.item()) if bool((expected == table).all()) else None
