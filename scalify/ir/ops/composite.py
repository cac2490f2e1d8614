"""Ops that front ends keep whole and ``scalify.normalize`` takes apart: softmax, norms, attention, losses."""

from math import prod

from scalify.ir.graph import DType, TensorType
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.dtypes import KIND_OF, promote
from scalify.ir.ops.meaning import composite as means
from scalify.ir.ops.shapes import Shape, axes, axis, broadcast, reduced, shown
from scalify.ir.ops.spec import Call, define, mistake


def _result(call: Call, shape: Shape) -> TensorType:
    return TensorType(_checked(call, 0), shape)


def _checked(call: Call, position: int) -> DType:
    dtype = call.operands[position].dtype
    if KIND_OF[dtype] != "float":
        raise mistake(f"{call.op} is of floats, not {dtype}")
    return dtype


def _softmax(call: Call) -> TensorType:
    axis(call, "axis", len(call.shape()))
    return _result(call, call.shape())


def _logsumexp(call: Call) -> TensorType:
    over = axes(call, "axes", len(call.shape()))
    return _result(call, reduced(call.shape(), over, keepdims=call.flag("keepdims")))


def _norm(call: Call) -> TensorType:
    """The weight has the sizes of the normalised dimensions, in the order of ``axes``."""
    shape = call.shape()
    over = axes(call, "axes", len(shape))
    if list(over) != sorted(over):
        raise mistake(f"axes {over} of {call.op} should rise")
    _check_affine(call, 1, tuple(shape[dim] for dim in over))
    return _result(call, shape)


def _check_affine(call: Call, first: int, wanted: Shape) -> None:
    for operand in call.operands[first:]:
        if operand.shape != wanted:
            raise mistake(f"weights of {call.op} have shape {shown(operand.shape)}, not {shown(wanted)}")


def _group_norm(call: Call) -> TensorType:
    shape, groups = call.shape(), call.integer("groups")
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        raise mistake(f"group_norm of {shown(shape)} in {groups} groups")
    _check_affine(call, 1, shape[1:2])
    return _result(call, shape)


def _batch_norm(call: Call) -> TensorType:
    shape = call.shape()
    if len(shape) < 2:
        raise mistake(f"batch_norm of {shown(shape)}")
    _check_affine(call, 1, shape[1:2])
    return _result(call, shape)


def _attention(call: Call) -> TensorType:
    """q [*,H,T,D], k [*,Hkv,S,D], v [*,Hkv,S,Dv], mask broadcast to [*,H,T,S].

    Scores that a mask or causality forbids count as -inf: a query that may see no key has no value (NaN).
    """
    q, k, v = call.shape(0), call.shape(1), call.shape(2)
    if not 3 <= len(q) == len(k) == len(v) or not q[:-3] == k[:-3] == v[:-3]:
        raise mistake(f"attention of q {shown(q)}, k {shown(k)}, v {shown(v)}")
    if k[-3] != v[-3] or not k[-3] or q[-3] % k[-3]:
        raise mistake(f"attention of {q[-3]} query heads with {k[-3]} key and {v[-3]} value heads")
    if q[-1] != k[-1] or k[-2] != v[-2]:
        raise mistake(f"attention of q {shown(q)}, k {shown(k)}, v {shown(v)}")
    if len(call.operands) == 4:
        _check_mask(call, (*q[:-1], k[-2]))
    dtype = promote(_checked(call, 0), _checked(call, 1), _checked(call, 2))
    return TensorType(dtype, (*q[:-1], v[-1]))


def _check_mask(call: Call, scores: Shape) -> None:
    mask = call.operands[3]
    if KIND_OF[mask.dtype] not in ("bool", "float"):
        raise mistake(f"the mask of attention is bool or float, not {mask.dtype}")
    if broadcast(call, scores, mask.shape) != scores:
        raise mistake(f"mask {shown(mask.shape)} of attention does not broadcast to {shown(scores)}")


def _cross_entropy(call: Call) -> TensorType:
    """``mean`` is over the rows that are not ignored; NaN where all are."""
    logits, target = call.operands
    if len(logits.shape) != 2 or target.shape != logits.shape[:1]:
        raise mistake(f"cross_entropy of logits {shown(logits.shape)} and target {shown(target.shape)}")
    if KIND_OF[target.dtype] != "int":
        raise mistake(f"the target of cross_entropy is of integers, not {target.dtype}")
    return _result(call, target.shape if call.text("reduction") == "none" else ())


def _interpolate(call: Call) -> TensorType:
    """x [N,C,*S] to the stated sizes. ``nearest`` reads floor(i * scale), ``linear`` is separable.

    ``scales`` is source sizes per result size, one for each spatial dimension; with ``align_corners``
    it is (S - 1) / (S' - 1).
    """
    shape, target = call.shape(), call.target().shape
    if len(shape) < 3 or len(target) != len(shape) or target[:2] != shape[:2]:
        raise mistake(f"interpolate from {shown(shape)} to {shown(target)}")
    if prod(target) and not prod(shape):
        raise mistake(f"interpolate from nothing to {shown(target)}")
    scales = call.attrs["scales"]
    if not isinstance(scales, tuple) or len(scales) != len(shape) - 2:
        raise mistake(f"scales of interpolate should have {len(shape) - 2} entries")
    return _result(call, target)


_AXIS = AttrSpec(kind="int")
_AXES = AttrSpec(kind="ints")
_EPS = AttrSpec(kind="float")
_GROUPS = AttrSpec(kind="int")

COMPOSITE = (
    define("softmax", 1, _softmax, means.softmax, axis=_AXIS),
    define("log_softmax", 1, _softmax, means.log_softmax, axis=_AXIS),
    define(
        "logsumexp", 1, _logsumexp, means.logsumexp, axes=_AXES, keepdims=AttrSpec(kind="bool", default=False)
    ),
    define("layer_norm", (1, 3), _norm, means.layer_norm, axes=_AXES, eps=_EPS),
    define("rms_norm", (1, 2), _norm, means.rms_norm, axes=_AXES, eps=_EPS),
    define("group_norm", (1, 3), _group_norm, means.group_norm, groups=_GROUPS, eps=_EPS),
    define("batch_norm", (3, 5), _batch_norm, means.batch_norm, eps=_EPS),
    define(
        "attention",
        (3, 4),
        _attention,
        means.attention,
        scale=AttrSpec(kind="float"),
        causal=AttrSpec(kind="bool", default=False),
    ),
    define(
        "cross_entropy",
        2,
        _cross_entropy,
        means.cross_entropy,
        ignore_index=AttrSpec(kind="int", default=-100),
        reduction=AttrSpec(kind="str", choices=("none", "mean", "sum"), default="mean"),
    ),
    define(
        "interpolate",
        1,
        _interpolate,
        means.interpolate,
        mode=AttrSpec(kind="str", choices=("nearest", "linear"), default="nearest"),
        align_corners=AttrSpec(kind="bool", default=False),
        scales=AttrSpec(kind="floats"),
    ),
)
