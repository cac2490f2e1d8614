"""reduce, sort and their kin: opcodes that are told by a computation how to combine or to compare."""

from collections.abc import Callable, Mapping
from math import inf
from types import MappingProxyType

from scalify.ir.graph import NodeId, TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.hlo.emit import Emission, Step, Value
from scalify.load.hlo.opaque import opaque
from scalify.load.hlo.program import Computation, Instruction

_COMBINE = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
_COMBINE_BOOL = {
    "and": "all",
    "or": "any",
    "minimum": "all",
    "maximum": "any",
    "multiply": "all",
    "add": "any",
}
_WITH_INIT = {"max": "max", "min": "min", "all": "and", "any": "or"}


def combination(emission: Emission, computation_id: int) -> str | None:
    """The opcode by which a computation of two scalars combines its parameters; None if it does more."""
    computation = emission.module.computations.get(computation_id)
    root = _root(computation) if computation else None
    if computation is None or root is None or sorted(_parameters(computation, root)) != [0, 1]:
        return None
    return root.opcode


def _root(computation: Computation) -> Instruction | None:
    found = [instruction for instruction in computation.instructions if instruction.id == computation.root]
    return found[0] if len(found) == 1 else None


def _parameters(computation: Computation, user: Instruction) -> list[int]:
    """The numbers of the parameters that an instruction reads directly; -1 for any other operand."""
    numbers = {
        instruction.id: instruction.parameter_number
        for instruction in computation.instructions
        if instruction.opcode == "parameter"
    }
    return [numbers.get(operand, -1) for operand in user.operands]


def reduce_kind(step: Step) -> str | None:
    """``sum``, ``max``, ...: how the instruction's computation combines, if that has a name."""
    if len(step.instruction.called) != 1:
        return None
    opcode = combination(step.emission, step.instruction.called[0])
    if opcode is None:
        return None
    boolean = step.type_of(step.array(0)).dtype == "bool"
    return (_COMBINE_BOOL if boolean else _COMBINE).get(opcode)


def _reduce(step: Step) -> Value:
    if len(step.operands) != 2 or step.instruction.shape.element == "tuple":
        return opaque(step)
    operand, init = step.arrays(2)
    kind, type = reduce_kind(step), step.type_of(operand)
    axes = step.axes(step.instruction.dimensions, len(type.shape), "dimensions")
    neutral = kind is not None and _is_neutral(step, kind, init)
    if kind is None or (not neutral and kind not in _WITH_INIT):
        return opaque(step)
    if not neutral or 0 in (type.shape[axis] for axis in axes):
        return _with_init(step, operand, init, kind, axes)
    return step.emit("reduce", (operand,), kind=kind, axes=axes, keepdims=False) if axes else operand


def _with_init(step: Step, operand: NodeId, init: NodeId, kind: str, axes: tuple[int, ...]) -> Value:
    """A start that is not neutral is one more element; where there are no others, it is the result."""
    if 0 in (step.type_of(operand).shape[axis] for axis in axes):
        return step.emit("broadcast", (init,), dims=()) if step.type.shape else init
    if axes:
        operand = step.emit("reduce", (operand,), step=kind, kind=kind, axes=axes, keepdims=False)
    return step.emit(_WITH_INIT[kind], (operand, init))


def _is_neutral(step: Step, kind: str, init: NodeId) -> bool:
    value = constant_value(step.emission, init)
    if value is None:
        return False
    dtype = step.type_of(init).dtype
    if kind in {"max", "min"}:
        lowest, highest = _bounds(dtype)
        return value == (lowest if kind == "max" else highest)
    return value == {"sum": 0, "prod": 1, "any": 0, "all": 1}[kind]


def _bounds(dtype: str) -> tuple[float, float]:
    if dtype[0] not in "iu":
        return -inf, inf
    bits = int(dtype[1:])
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_TRANSPARENT = frozenset({"broadcast", "reshape", "transpose"})


def constant_value(emission: Emission, node_id: NodeId) -> float | None:
    """The one number that all elements of a node are, if it is a constant seen through views and casts."""
    node = emission.nodes[node_id]
    while node.op in _TRANSPARENT or (node.op == "cast" and KIND_OF[node.type.dtype] == "float"):
        node = emission.nodes[node.operands[0]]
    data = node.attrs.get("data") if node.op == "constant" else None
    if isinstance(data, tuple) and len(data) == 1 and isinstance(data[0], int | float):
        return data[0]
    return None


def _sort(step: Step) -> Value:
    """Recognized: one array, or keys with a counter beside them, in the order of a plain comparison."""
    descending = _descending(step)
    dims = step.instruction.dimensions
    if descending is None or len(dims) != 1 or len(step.operands) not in (1, 2):
        return opaque(step)
    keys = step.array(0)
    type = step.type_of(keys)
    step.axes(dims, len(type.shape), "dimensions")
    if len(step.operands) == 1:
        if step.instruction.shape.element == "tuple":
            return (step.emit("sort", (keys,), type, axis=dims[0], descending=descending),)
        return step.emit("sort", (keys,), axis=dims[0], descending=descending)
    if not _counts_along(step, step.array(1), dims[0]) or not step.instruction.stable:
        return opaque(step)
    order = TensorType(step.type_of(step.array(1)).dtype, type.shape)
    return (
        step.emit("sort", (keys,), type, "0", axis=dims[0], descending=descending),
        step.emit("argsort", (keys,), order, "1", axis=dims[0], descending=descending),
    )


def _descending(step: Step) -> bool | None:
    if len(step.instruction.called) != 1:
        return None
    computation = step.emission.module.computations[step.instruction.called[0]]
    root = _root(computation)
    if root is None or root.opcode != "compare":
        return None
    compared = _parameters(computation, root)
    if compared not in ([0, 1], [1, 0]) or root.direction not in {"LT", "GT"}:
        return None
    return (root.direction == "GT") == (compared == [0, 1])


def _counts_along(step: Step, value: NodeId, axis: int) -> bool:
    node = step.emission.nodes[value]
    if node.op == "broadcast":
        dims = node.attrs["dims"]
        node = step.emission.nodes[node.operands[0]]
        return node.op == "iota" and dims == (axis,)
    return node.op == "iota" and node.attrs["axis"] == axis


def _topk(step: Step) -> Value:
    """Values and their places along the last dimension."""
    (operand,) = step.arrays(1)
    type, parts = step.type_of(operand), step.instruction.shape.parts
    if len(parts) != 2 or not type.shape:
        raise step.wrong("gives values and indices along the last dimension")
    axis, k = len(type.shape) - 1, step.instruction.k
    shape = (*type.shape[:-1], k)
    largest = step.instruction.largest
    values, places = TensorType(type.dtype, shape), TensorType("i32", shape)
    return (
        step.emit("topk_values", (operand,), values, "0", k=k, axis=axis, largest=largest),
        step.emit("topk_indices", (operand,), places, "1", k=k, axis=axis, largest=largest),
    )


HANDLERS: Mapping[str, Callable[[Step], Value]] = MappingProxyType(
    {"reduce": _reduce, "sort": _sort, "topk": _topk}
)
