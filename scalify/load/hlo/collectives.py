"""Opcodes in which ranks exchange values, and the rank's own number."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from scalify.ir.graph import NodeId, TensorType
from scalify.ir.mesh import Groups
from scalify.load.hlo.emit import Step, Value
from scalify.load.hlo.opaque import opaque
from scalify.load.hlo.program import Shape
from scalify.load.hlo.ranks import rank_groups, rank_pairs
from scalify.load.hlo.reduction import reduce_kind
from scalify.load.hlo.shapes import tensor_type

_OF_BOOLS = {"all": "min", "any": "max"}


def _all_reduce(step: Step) -> Value:
    kind = reduce_kind(step)
    return _each(
        step, "all_reduce", _result_shapes(step), {"kind": _OF_BOOLS.get(kind, kind)} if kind else None
    )


def _reduce_scatter(step: Step) -> Value:
    kind = reduce_kind(step)
    attrs = {"kind": _OF_BOOLS.get(kind, kind), "dim": _dimension(step)} if kind else None
    return _each(step, "reduce_scatter", _result_shapes(step), attrs)


def _all_gather(step: Step) -> Value:
    return _each(step, "all_gather", _result_shapes(step), {"dim": _dimension(step)})


def _broadcast(step: Step) -> Value:
    """The first rank of each group is the source."""
    return _each(step, "broadcast_from", _result_shapes(step), {"root": 0})


def _result_shapes(step: Step) -> tuple[Shape, ...]:
    """The shapes of the results, one for each operand; a start's result also repeats its operands."""
    shape, count = step.instruction.shape, len(step.operands)
    if shape.element != "tuple":
        return (shape,)
    if step.instruction.opcode in {"all-gather-start", "collective-permute-start"} and len(shape.parts) >= 2:
        shape = shape.parts[1]
        return shape.parts if shape.element == "tuple" else (shape,)
    if len(shape.parts) != count:
        raise step.wrong(f"has {count} operands and {len(shape.parts)} results")
    return shape.parts


def _each(step: Step, op: str, results: tuple[Shape, ...], attrs: Mapping[str, str | int] | None) -> Value:
    """The collective of every operand on its own: that they travel together does not change them."""
    groups = rank_groups(step.instruction, step.emission.ranks)
    operands = step.arrays()
    if attrs is None or groups is None:
        return opaque(step)
    if len(results) != len(operands):
        raise step.wrong(f"has {len(operands)} operands and {len(results)} results")
    if len(groups) == step.emission.ranks.replicas * step.emission.ranks.partitions:
        return _tupled(step, operands)
    nodes = [
        step.emit(op, (operand,), tensor_type(shape, step.id), f"{index}", **attrs, groups=groups)
        for index, (operand, shape) in enumerate(zip(operands, results, strict=True))
    ]
    return _tupled(step, tuple(nodes))


def _tupled(step: Step, nodes: tuple[NodeId, ...]) -> Value:
    """As the users of the instruction expect it: a tuple where its result, once done, is one."""
    starts = step.instruction.opcode in {"all-gather-start", "collective-permute-start"}
    is_tuple = step.instruction.shape.element == "tuple" and not (starts and len(nodes) == 1)
    return nodes if is_tuple else nodes[0]


def _dimension(step: Step) -> int:
    if len(step.instruction.dimensions) != 1:
        raise step.wrong(f"is along the dimensions {list(step.instruction.dimensions)}")
    return step.instruction.dimensions[0]


def _all_to_all(step: Step) -> Value:
    groups = rank_groups(step.instruction, step.emission.ranks)
    if groups is None:
        return opaque(step)
    if step.instruction.shape.element == "tuple":
        return _exchanged(step, groups)
    dim = _dimension(step)
    return step.emit("all_to_all", step.arrays(1), split_dim=dim, concat_dim=dim, groups=groups)


def _exchanged(step: Step, groups: Groups) -> Value:
    """Operand j goes to member j: stack the operands, exchange along the stack, take it apart."""
    operands = step.arrays()
    count, type = len(operands), step.type_of(operands[0]) if operands else None
    if type is None or count != len(groups[0]) or any(step.type_of(operand) != type for operand in operands):
        raise step.wrong(f"exchanges {count} operands among {len(groups[0])} ranks")
    stacked_type = TensorType(type.dtype, (count, *type.shape))
    rows = tuple(
        step.reshaped(operand, (1, *type.shape), f"row {index}") for index, operand in enumerate(operands)
    )
    stacked = step.emit("concat", rows, stacked_type, "rows", axis=0)
    moved = step.emit(
        "all_to_all", (stacked,), stacked_type, "exchange", split_dim=0, concat_dim=0, groups=groups
    )
    return tuple(_row(step, moved, index, type) for index in range(count))


def _row(step: Step, stacked: NodeId, index: int, type: TensorType) -> NodeId:
    shape = step.type_of(stacked).shape
    row = step.emit(
        "slice",
        (stacked,),
        TensorType(type.dtype, (1, *type.shape)),
        f"from {index}",
        starts=(index, *(0 for _ in type.shape)),
        limits=(index + 1, *shape[1:]),
        steps=(1,) * len(shape),
    )
    return step.reshaped(row, type.shape, f"{index}")


def _permute(step: Step) -> Value:
    ranks = step.emission.ranks
    total = ranks.replicas * ranks.partitions
    pairs = rank_pairs(step.instruction, ranks)
    if any(not 0 <= rank < total for pair in pairs for rank in pair):
        raise step.wrong(f"names a rank outside 0..{total - 1}")
    if len(step.operands) != 1:
        return opaque(step)
    return step.emit("permute", step.arrays(1), step.type_of(step.array(0)), pairs=pairs)


def _done(step: Step) -> Value:
    if len(step.operands) != 1:
        raise step.wrong(f"has {len(step.operands)} operands, not 1")
    return step.operands[0]


def _number(step: Step) -> Value:
    """partition-id varies fastest in the rank's number."""
    ranks = step.emission.ranks
    if not ranks.known:
        return opaque(step)
    by_partition = step.instruction.opcode == "partition-id"
    stride, size = (1, ranks.partitions) if by_partition else (ranks.partitions, ranks.replicas)
    if size == 1:
        return step.emit("constant", (), data=(0,))
    return step.emit("rank", (), stride=stride, size=size)


HANDLERS: Mapping[str, Callable[[Step], Value]] = MappingProxyType(
    {
        "all-reduce": _all_reduce,
        "all-reduce-start": _all_reduce,
        "all-gather": _all_gather,
        "all-gather-start": _all_gather,
        "reduce-scatter": _reduce_scatter,
        "all-to-all": _all_to_all,
        "collective-broadcast": _broadcast,
        "collective-permute": _permute,
        "collective-permute-start": _permute,
        "all-reduce-done": _done,
        "all-gather-done": _done,
        "collective-permute-done": _done,
        "partition-id": _number,
        "replica-id": _number,
    }
)
