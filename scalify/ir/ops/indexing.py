"""Ops that read and write where their operands say. Indices are 0 .. size-1; others have no meaning."""

from scalify.ir.graph import TensorType
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.meaning import indexing as means
from scalify.ir.ops.shapes import Shape, axis, broadcast, shown
from scalify.ir.ops.spec import Call, define, mistake


def _check_indices(call: Call, *positions: int) -> None:
    for position in positions:
        dtype = call.operands[position].dtype
        if KIND_OF[dtype] != "int":
            raise mistake(f"the indices of {call.op} are integers, not {dtype}")


def _take(call: Call) -> TensorType:
    """As numpy.take: the indices' dimensions stand where ``axis`` was."""
    shape = call.shape()
    along = axis(call, "axis", len(shape))
    _check_indices(call, 1)
    return TensorType(call.operands[0].dtype, (*shape[:along], *call.shape(1), *shape[along + 1 :]))


def _take_along(call: Call) -> TensorType:
    """As numpy.take_along_axis, without its broadcasting: the other dimensions are equal."""
    shape, indices = call.shape(), call.shape(1)
    along = axis(call, "axis", len(shape))
    _check_indices(call, 1)
    if len(indices) != len(shape) or _without(indices, along) != _without(shape, along):
        raise mistake(f"take_along axis {along} of {shown(shape)} by {shown(indices)}")
    return TensorType(call.operands[0].dtype, indices)


def _without(shape: Shape, dim: int) -> Shape:
    return shape[:dim] + shape[dim + 1 :]


def _scatter(call: Call) -> TensorType:
    """As torch.scatter: only src[: indices' sizes] is read. Of equal indices ``set`` keeps the last."""
    shape, indices, src = call.shape(), call.shape(1), call.shape(2)
    along = axis(call, "axis", len(shape))
    _check_indices(call, 1)
    if not len(shape) == len(indices) == len(src):
        raise mistake(f"scatter of {shown(src)} by {shown(indices)} into {shown(shape)}")
    for dim, size in enumerate(indices):
        if size > src[dim] or (dim != along and size > shape[dim]):
            raise mistake(f"scatter of {shown(src)} by {shown(indices)} into {shown(shape)}")
    return _with_source(call, 2)


def _with_source(call: Call, position: int) -> TensorType:
    into, source = call.operands[0].dtype, call.operands[position].dtype
    if KIND_OF[into] != KIND_OF[source]:
        raise mistake(f"{call.op} writes {source} into {into}")
    return call.operands[0]


def _index_put(call: Call) -> TensorType:
    """x[i0, i1, ...] = src: indices broadcast together, src to what they address. Last of equals wins."""
    shape, positions = call.shape(), range(2, len(call.operands))
    if len(positions) > len(shape):
        raise mistake(f"index_put of {len(positions)} indices into {shown(shape)}")
    _check_indices(call, *positions)
    addressed = (*broadcast(call, *(call.shape(at) for at in positions)), *shape[len(positions) :])
    if broadcast(call, addressed, call.shape(1)) != addressed:
        raise mistake(f"index_put of {shown(call.shape(1))} where {shown(addressed)} is addressed")
    return _with_source(call, 1)


def _one_hot(call: Call) -> TensorType:
    """An index outside 0 .. classes-1 gives zeros. Declared as any kind of number."""
    _check_indices(call, 0)
    if call.integer("classes") < 0:
        raise mistake("one_hot of fewer than no classes")
    dtype = call.declared.dtype if call.declared else "i64"
    return TensorType(dtype, (*call.shape(), call.integer("classes")))


_AXIS = AttrSpec(kind="int")
_MODE = AttrSpec(kind="str", choices=("set", "add"), default="set")

INDEXING = (
    define("take", 2, _take, means.take, axis=_AXIS),
    define("take_along", 2, _take_along, means.take_along, axis=_AXIS),
    define("scatter", 3, _scatter, means.scatter, axis=_AXIS, mode=_MODE),
    define("index_put", (3, None), _index_put, means.index_put, mode=_MODE),
    define("one_hot", 1, _one_hot, means.one_hot, classes=AttrSpec(kind="int")),
)
