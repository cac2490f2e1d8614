"""Ops that combine elements along axes: reductions, scans, sorts."""

from scalify.ir.graph import TensorType
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.dtypes import KIND_OF, as_float, as_number
from scalify.ir.ops.meaning import reduction as means
from scalify.ir.ops.shapes import axes, axis, reduced, shown
from scalify.ir.ops.spec import Call, define, mistake

REDUCE_KINDS = ("sum", "mean", "max", "min", "prod", "any", "all")


def _reduce(call: Call) -> TensorType:
    shape, dtype = call.shape(), call.operands[0].dtype
    over = axes(call, "axes", len(shape))
    match call.text("kind"):
        case "any" | "all":
            dtype = "bool"
        case "mean":
            dtype = as_float(dtype)
        case "sum" | "prod":
            dtype = as_number(dtype)
        case _:
            _check_not_empty(call, over)
    return TensorType(dtype, reduced(shape, over, keepdims=call.flag("keepdims")))


def _check_not_empty(call: Call, over: tuple[int, ...]) -> None:
    if any(call.shape()[dim] == 0 for dim in over):
        raise mistake(f"{call.op} over an empty dimension of {shown(call.shape())}")


def _arg_extreme(call: Call) -> TensorType:
    """The first of equals wins."""
    over = (axis(call, "axis", len(call.shape())),)
    _check_not_empty(call, over)
    return TensorType("i64", reduced(call.shape(), over, keepdims=call.flag("keepdims")))


def _scan(call: Call) -> TensorType:
    axis(call, "axis", len(call.shape()))
    return TensorType(as_number(call.operands[0].dtype), call.shape())


def _sort(call: Call) -> TensorType:
    axis(call, "axis", len(call.shape()))
    return call.operands[0]


def _argsort(call: Call) -> TensorType:
    """Stable: equals keep their order, in descending order too."""
    return TensorType("i64", _sort(call).shape)


def _topk(call: Call) -> TensorType:
    """Sorted, best first; of equals the one that comes first."""
    shape, count = call.shape(), call.integer("k")
    along = axis(call, "axis", len(shape))
    if not 0 <= count <= shape[along]:
        raise mistake(f"{call.op} of {count} among {shape[along]}")
    if KIND_OF[call.operands[0].dtype] == "complex":
        raise mistake(f"{call.op} of complex numbers")
    dtype = "i64" if call.op == "topk_indices" else call.operands[0].dtype
    return TensorType(dtype, (*shape[:along], count, *shape[along + 1 :]))


_AXIS = AttrSpec(kind="int")
_KEEPDIMS = AttrSpec(kind="bool", default=False)
_DESCENDING = AttrSpec(kind="bool", default=False)
_LARGEST = AttrSpec(kind="bool", default=True)

REDUCTION = (
    define(
        "reduce",
        1,
        _reduce,
        means.reduce,
        kind=AttrSpec(kind="str", choices=REDUCE_KINDS),
        axes=AttrSpec(kind="ints"),
        keepdims=_KEEPDIMS,
    ),
    define("argmax", 1, _arg_extreme, means.argmax, axis=_AXIS, keepdims=_KEEPDIMS),
    define("argmin", 1, _arg_extreme, means.argmin, axis=_AXIS, keepdims=_KEEPDIMS),
    define("cumsum", 1, _scan, means.cumsum, axis=_AXIS),
    define("cumprod", 1, _scan, means.cumprod, axis=_AXIS),
    define("sort", 1, _sort, means.sort, axis=_AXIS, descending=_DESCENDING),
    define("argsort", 1, _argsort, means.argsort, axis=_AXIS, descending=_DESCENDING),
    define("topk_values", 1, _topk, means.topk_values, k=AttrSpec(kind="int"), axis=_AXIS, largest=_LARGEST),
    define(
        "topk_indices", 1, _topk, means.topk_indices, k=AttrSpec(kind="int"), axis=_AXIS, largest=_LARGEST
    ),
)
