"""Primitives that read and write where their operands say. Indices are taken to be in range in all modes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scalify.capture.jax.reader import Call, Handler, whole
from scalify.load.hlo.program import GatherDims

_COMBINED = {
    "scatter": "second", "scatter-add": "add", "scatter_add": "add", "scatter-mul": "multiply",
    "scatter_mul": "multiply", "scatter-min": "minimum", "scatter_min": "minimum", "scatter-max": "maximum",
    "scatter_max": "maximum",
}  # fmt: skip


def _gather(call: Call) -> Sequence[int]:
    numbers = call.params["dimension_numbers"]
    dims = GatherDims(
        offset=whole(numbers.offset_dims),
        collapsed=whole(numbers.collapsed_slice_dims),
        start_map=whole(numbers.start_index_map),
        index_vector=len(call.shape_at(1).dims) - 1,
        operand_batch=whole(numbers.operand_batching_dims),
        indices_batch=whole(numbers.start_indices_batching_dims),
    )
    return (call.add("gather", call.operands, gather=dims, sizes=call.integers("slice_sizes")),)


def _scatter(call: Call) -> Sequence[int]:
    numbers = call.params["dimension_numbers"]
    dims = GatherDims(
        offset=whole(numbers.update_window_dims),
        collapsed=whole(numbers.inserted_window_dims),
        start_map=whole(numbers.scatter_dims_to_operand_dims),
        index_vector=len(call.shape_at(1).dims) - 1,
        operand_batch=whole(numbers.operand_batching_dims),
        indices_batch=whole(numbers.scatter_indices_batching_dims),
    )
    combiner = call.listing.combiner(_COMBINED[call.primitive], call.shape.element)
    return (call.add("scatter", call.operands, gather=dims, called=(combiner,)),)


HANDLERS: Mapping[str, Handler] = MappingProxyType({"gather": _gather, **dict.fromkeys(_COMBINED, _scatter)})
