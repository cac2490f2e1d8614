"""Ops in which ranks exchange values. Every rank of the mesh takes part; groups partition the mesh."""

from functools import lru_cache

from scalify.ir.graph import TensorType
from scalify.ir.mesh import Groups
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.meaning import collective as means
from scalify.ir.ops.shapes import Shape, axis, shown
from scalify.ir.ops.spec import Call, define, mistake

COMBINE_KINDS = ("sum", "avg", "max", "min", "prod")


def _group_size(call: Call) -> int:
    reason = _wrong_groups(call.groups(), call.mesh.size)
    if reason:
        raise mistake(f"groups of {call.op} {reason}")
    return len(call.groups()[0])


@lru_cache(maxsize=1024)
def _wrong_groups(groups: Groups, ranks: int) -> str | None:
    if not groups:
        return "are empty"
    if len(set(map(len, groups))) != 1:
        return "have different sizes"
    members = [rank for group in groups for rank in group]
    if len(members) != ranks or set(members) != set(range(ranks)):
        return f"are not a partition of the {ranks} ranks of the mesh"
    return None


def _resized(shape: Shape, dim: int, size: int) -> Shape:
    return (*shape[:dim], size, *shape[dim + 1 :])


def _all_reduce(call: Call) -> TensorType:
    _group_size(call)
    return call.operands[0]


def _all_gather(call: Call) -> TensorType:
    shape, count = call.shape(), _group_size(call)
    dim = axis(call, "dim", len(shape))
    return TensorType(call.operands[0].dtype, _resized(shape, dim, shape[dim] * count))


def _reduce_scatter(call: Call) -> TensorType:
    shape, count = call.shape(), _group_size(call)
    dim = axis(call, "dim", len(shape))
    return TensorType(call.operands[0].dtype, _resized(shape, dim, _part(call, dim, count)))


def _part(call: Call, dim: int, count: int) -> int:
    size = call.shape()[dim]
    if size % count:
        raise mistake(f"{call.op} cuts dimension {dim} of {shown(call.shape())} into {count} equal parts")
    return size // count


def _all_to_all(call: Call) -> TensorType:
    """Piece j along ``split_dim`` goes to member j; what arrives is put together along ``concat_dim``."""
    shape, count = call.shape(), _group_size(call)
    split, concat = axis(call, "split_dim", len(shape)), axis(call, "concat_dim", len(shape))
    cut = _resized(shape, split, _part(call, split, count))
    return TensorType(call.operands[0].dtype, _resized(cut, concat, cut[concat] * count))


def _permute(call: Call) -> TensorType:
    """A rank that no pair sends to gets zeros."""
    pairs, ranks = call.pairs("pairs"), call.mesh.size
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if len(set(sources)) != len(pairs) or len(set(targets)) != len(pairs):
        raise mistake("pairs of permute name a source or a target twice")
    if any(not 0 <= rank < ranks for rank in (*sources, *targets)):
        raise mistake(f"pairs of permute name a rank outside 0..{ranks - 1}")
    return call.operands[0]


def _broadcast_from(call: Call) -> TensorType:
    if not 0 <= call.integer("root") < _group_size(call):
        raise mistake(f"root {call.integer('root')} of broadcast_from is no member's number in its group")
    return call.operands[0]


_KIND = AttrSpec(kind="str", choices=COMBINE_KINDS, default="sum")
_DIM = AttrSpec(kind="int")
_GROUPS = AttrSpec(kind="groups")

COLLECTIVE = (
    define("all_reduce", 1, _all_reduce, None, means.all_reduce, kind=_KIND, groups=_GROUPS),
    define("all_gather", 1, _all_gather, None, means.all_gather, dim=_DIM, groups=_GROUPS),
    define(
        "reduce_scatter", 1, _reduce_scatter, None, means.reduce_scatter, kind=_KIND, dim=_DIM, groups=_GROUPS
    ),
    define(
        "all_to_all", 1, _all_to_all, None, means.all_to_all, split_dim=_DIM, concat_dim=_DIM, groups=_GROUPS
    ),
    define("permute", 1, _permute, None, means.permute, pairs=AttrSpec(kind="pairs")),
    define(
        "broadcast_from",
        1,
        _broadcast_from,
        None,
        means.broadcast_from,
        root=AttrSpec(kind="int"),
        groups=_GROUPS,
    ),
)
