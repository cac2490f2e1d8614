"""gather, where it takes whole rows: ``numpy.take`` along one axis."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from scalify.ir.graph import NodeId, TensorType
from scalify.load.hlo.emit import Step, Value
from scalify.load.hlo.movement import check_box
from scalify.load.hlo.opaque import opaque
from scalify.load.hlo.program import GatherDims


def _gather(step: Step) -> Value:
    """A gather along one axis, one index at a time, is a take of the part that the slice sizes leave.

    HLO clamps indices into range; scalify assumes that they are in range.
    """
    operand, indices = step.arrays(2)
    dims, sizes = step.instruction.gather or GatherDims(), step.instruction.sizes
    shape = step.type_of(operand).shape
    check_box(step, sizes, shape)
    step.axes(dims.start_map, len(shape), "indexed dimensions")
    step.axes(dims.collapsed, len(shape), "collapsed dimensions")
    step.axes(dims.offset, len(step.type.shape), "offset dimensions")
    if dims.operand_batch or dims.indices_batch or len(dims.start_map) != 1 or sizes[dims.start_map[0]] != 1:
        return opaque(step)
    if any(sizes[axis] != 1 for axis in dims.collapsed):
        raise step.wrong("drops dimensions of more than one element")
    numbers = _one_index_each(step, indices, dims.index_vector)
    return opaque(step) if numbers is None else _take(step, operand, numbers, dims)


def _one_index_each(step: Step, indices: NodeId, index_vector: int) -> NodeId | None:
    """The indices without the dimension that would hold several coordinates of one."""
    shape = step.type_of(indices).shape
    if index_vector == len(shape):
        return indices
    if not 0 <= index_vector < len(shape) or shape[index_vector] != 1:
        return None
    return step.reshaped(indices, shape[:index_vector] + shape[index_vector + 1 :], "indices")


def _take(step: Step, operand: NodeId, numbers: NodeId, dims: GatherDims) -> Value:
    axis, sizes = dims.start_map[0], step.instruction.sizes
    whole = step.type_of(operand)
    box = tuple(full if dim == axis else sizes[dim] for dim, full in enumerate(whole.shape))
    if box != whole.shape:
        operand = step.emit(
            "slice",
            (operand,),
            TensorType(whole.dtype, box),
            "part",
            starts=(0,) * len(box),
            limits=box,
            steps=(1,) * len(box),
        )
    batch = step.type_of(numbers).shape
    taken_shape = (*box[:axis], *batch, *box[axis + 1 :])
    taken = step.emit("take", (operand, numbers), TensorType(whole.dtype, taken_shape), "taken", axis=axis)
    return _arranged(step, taken, axis, len(batch), dims)


def _arranged(step: Step, taken: NodeId, axis: int, batch_rank: int, dims: GatherDims) -> Value:
    """From take's order (indices where the axis was) to HLO's (window dimensions at ``offset``)."""
    rank = len(step.instruction.sizes)
    window = [dim for dim in range(rank) if dim not in dims.collapsed and dim != axis]
    place = {dim: dim if dim < axis else dim + batch_rank - 1 for dim in window}
    batch = [axis + index for index in range(batch_rank)]
    kept = [dim for dim in range(rank) if dim not in dims.collapsed]
    result_rank = len(step.type.shape)
    if len(kept) != len(dims.offset) or result_rank != len(kept) + batch_rank:
        raise step.wrong("does not place every dimension of its result")
    at_offset = dict(zip(sorted(dims.offset), kept, strict=True))
    batch_places = iter(batch)
    order = [
        place.get(at_offset[dim]) if dim in at_offset else next(batch_places) for dim in range(result_rank)
    ]
    dropped = [dim for dim in range(rank) if dim in dims.collapsed and dim != axis]
    perm = (*(source for source in order if source is not None), *_dropped_places(dropped, axis, batch_rank))
    return step.reshaped(step.transposed(taken, perm, "order"), step.type.shape)


def _dropped_places(dropped: list[int], axis: int, batch_rank: int) -> tuple[int, ...]:
    """Collapsed dimensions other than the indexed one have size 1: last in order, gone in the reshape."""
    return tuple(dim if dim < axis else dim + batch_rank - 1 for dim in dropped)


HANDLERS: Mapping[str, Callable[[Step], Value]] = MappingProxyType({"gather": _gather})
