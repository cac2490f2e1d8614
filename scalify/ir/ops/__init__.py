"""The table of ops: for each what it needs, which type it has and what it means in NumPy.

``OPS`` is closed: an op that is not in it is loaded as ``opaque``, which nothing may assume anything about.
"""

from collections.abc import Mapping
from types import MappingProxyType

from scalify.ir.graph import Attr, TensorType
from scalify.ir.mesh import SINGLE, Mesh
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.collective import COLLECTIVE
from scalify.ir.ops.composite import COMPOSITE
from scalify.ir.ops.contraction import CONTRACTION
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.elementwise import ELEMENTWISE
from scalify.ir.ops.indexing import INDEXING
from scalify.ir.ops.leaves import LEAVES
from scalify.ir.ops.movement import MOVEMENT
from scalify.ir.ops.pooling import POOLING
from scalify.ir.ops.reduction import REDUCTION
from scalify.ir.ops.spec import Call, OpSpec, mistake

__all__ = ["OPS", "AttrSpec", "Call", "OpSpec", "type_of"]

OPS: Mapping[str, OpSpec] = MappingProxyType(
    {
        spec.name: spec
        for specs in (
            LEAVES,
            ELEMENTWISE,
            MOVEMENT,
            CONTRACTION,
            REDUCTION,
            COMPOSITE,
            POOLING,
            INDEXING,
            COLLECTIVE,
        )
        for spec in specs
    }
)


def type_of(
    op: str,
    operands: tuple[TensorType, ...] = (),
    attrs: Mapping[str, Attr] = MappingProxyType({}),
    *,
    mesh: Mesh = SINGLE,
    declared: TensorType | None = None,
) -> TensorType:
    """The type of a node, from its op, its operands' types and its attributes.

    ``declared`` is the type the node states. Ops whose type does not follow from their operands (inputs,
    reshape, cast, ...) take it over; for all others it must have the inferred shape and kind of dtype, and
    then it is the answer. Raises ``InvalidGraph`` saying what is wrong, without naming a node.
    """
    if op == "constant":
        return _type_of(op, operands, attrs, mesh, declared)
    # As text: 1, 1.0 and True are equal, but not the same attribute.
    key = (op, operands, repr(attrs), mesh, declared)
    known = _types.get(key)
    if known is None:
        known = _type_of(op, operands, attrs, mesh, declared)
        if len(_types) >= MOST_TYPES:
            _types.clear()
        _types[key] = known
    return known


_types: dict[object, TensorType] = {}
MOST_TYPES = 10_000
"""Nodes of equal layers have equal types; this many are remembered."""


def _type_of(
    op: str,
    operands: tuple[TensorType, ...],
    attrs: Mapping[str, Attr],
    mesh: Mesh,
    declared: TensorType | None,
) -> TensorType:
    spec = OPS.get(op)
    if spec is None:
        raise mistake(f"there is no op {op!r}: what has no meaning here is 'opaque'")
    spec.check_arity(len(operands))
    spec.check_attrs(attrs)
    inferred = spec.infer(Call(op=op, operands=operands, attrs=attrs, mesh=mesh, declared=declared))
    if declared is None or declared == inferred:
        return inferred
    if declared.shape != inferred.shape:
        raise mistake(f"{op} has shape {list(inferred.shape)}, but {list(declared.shape)} is stated")
    if KIND_OF[declared.dtype] != KIND_OF[inferred.dtype]:
        raise mistake(f"{op} gives {KIND_OF[inferred.dtype]}, but {declared.dtype} is stated")
    return declared
