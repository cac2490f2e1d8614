"""Gathers and scatters with batches, and scatters of rows: ``take_along``, ``scatter``, ``index_put``.

In: HLO's dimension numbers. Out: the op of the IR that says the same, or ``opaque``. HLO clamps indices or
drops what is out of range; scalify assumes that they are in range.
"""

from scalify.ir.graph import NodeId, TensorType
from scalify.load.hlo.emit import Step, Value
from scalify.load.hlo.indexing import HANDLERS
from scalify.load.hlo.opaque import opaque
from scalify.load.hlo.program import GatherDims
from scalify.load.hlo.reduction import reduce_kind


def gather(step: Step) -> Value:
    """With a batch of every dimension but one it is ``take_along``; without, ``take``."""
    dims = step.instruction.gather or GatherDims()
    if not dims.operand_batch:
        return HANDLERS["gather"](step)
    operand, indices = step.arrays(2)
    places = _along(step, operand, indices, dims)
    if dims.offset or any(size != 1 for size in step.instruction.sizes) or places is None:
        return opaque(step)
    taken = step.emit("take_along", (operand, places), step.type, "taken", axis=dims.start_map[0])
    return step.reshaped(taken, step.type.shape)


def scatter(step: Step) -> Value:
    """Whole rows at one index each, or single elements with a batch of every other dimension."""
    dims = step.instruction.gather or GatherDims()
    mode = _mode(step)
    if len(step.operands) != 3 or step.instruction.shape.element == "tuple" or mode is None:
        return opaque(step)
    if dims.operand_batch:
        return _scatter_along(step, dims, mode)
    return _put_rows(step, dims, mode)


def _mode(step: Step) -> str | None:
    """``add``, or ``set`` where the computation takes its second parameter."""
    if len(step.instruction.called) != 1:
        return None
    computation = step.emission.module.computations[step.instruction.called[0]]
    root = next((one for one in computation.instructions if one.id == computation.root), None)
    if root is not None and root.opcode == "parameter" and root.parameter_number == 1:
        return "set"
    return "add" if reduce_kind(step) == "sum" else None


def _along(step: Step, operand: NodeId, indices: NodeId, dims: GatherDims) -> NodeId | None:
    """The indices of a gather or scatter along one dimension with the operand's other ones as its batch."""
    shape, given = step.type_of(operand).shape, step.type_of(indices).shape
    if len(dims.start_map) != 1 or dims.collapsed != dims.start_map:
        return None
    axis = dims.start_map[0]
    others = tuple(dim for dim in range(len(shape)) if dim != axis)
    places = given
    if dims.index_vector < len(given):
        if dims.index_vector != len(given) - 1 or given[-1] != 1:
            return None
        places = given[:-1]
    batch = dict(zip(dims.operand_batch, dims.indices_batch, strict=True))
    in_order = tuple(sorted(batch)) == others and len(places) == len(shape)
    if not in_order or any(batch[dim] != dim for dim in others):
        return None
    if any(places[dim] != shape[dim] for dim in others):
        return None
    return step.reshaped(indices, places, "places")


def _scatter_along(step: Step, dims: GatherDims, mode: str) -> Value:
    operand, indices, updates = step.arrays(3)
    places = _along(step, operand, indices, dims)
    if places is None or dims.offset or step.type_of(places).shape != step.type_of(updates).shape:
        return opaque(step)
    return step.emit("scatter", (operand, places, updates), axis=dims.start_map[0], mode=mode)


def _put_rows(step: Step, dims: GatherDims, mode: str) -> Value:
    """Bring the indexed dimension and the updates' batch to the front, put, and bring them back."""
    operand, indices, updates = step.arrays(3)
    whole, given, source = (step.type_of(value).shape for value in (operand, indices, updates))
    if len(dims.start_map) != 1 or dims.collapsed != dims.start_map:
        return opaque(step)
    axis = dims.start_map[0]
    places = given[:-1] if dims.index_vector == len(given) - 1 and given[-1:] == (1,) else given
    if dims.index_vector != len(places) or len(source) != len(places) + len(dims.offset):
        return opaque(step)
    rows = (*whole[:axis], *whole[axis + 1 :])
    batch = tuple(dim for dim in range(len(source)) if dim not in dims.offset)
    order = (*batch, *sorted(dims.offset))
    if tuple(source[dim] for dim in order) != (*places, *rows):
        return opaque(step)
    front = (axis, *(dim for dim in range(len(whole)) if dim != axis))
    table = step.transposed(operand, front, "front")
    put = step.emit(
        "index_put",
        (table, step.transposed(updates, order, "rows"), step.reshaped(indices, places, "places")),
        TensorType(step.type.dtype, tuple(whole[dim] for dim in front)),
        "put",
        mode=mode,
    )
    return step.transposed(put, tuple(front.index(dim) for dim in range(len(whole))), "back")
