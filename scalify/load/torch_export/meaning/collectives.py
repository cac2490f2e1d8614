"""Functional collectives. Waiting for one is nothing: values here have no time.

Process groups are names in the graph; the file says beside it how each cuts up the mesh. A name that
nothing is said of makes the collective opaque.
"""

from types import MappingProxyType

from scalify.ir.graph import Attr
from scalify.ir.mesh import Groups
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.operation import Meanings, Operation, Unmodelled

_KINDS = {"sum": "sum", "avg": "avg", "max": "max", "min": "min", "product": "prod"}


def _groups(op: Operation) -> Groups:
    name = op.text("group_name", "")
    groups = op.program.groups.get(name)
    if groups is None:
        raise Unmodelled(f"process group {name!r}, whose ranks are not known")
    size = op.integer("group_size", len(groups[0]))
    if size != len(groups[0]):
        raise Unmodelled(f"process group {name!r} of {size} ranks, which the file says has {len(groups[0])}")
    return groups


def _kind(op: Operation) -> str:
    given = op.text("reduce_op", "").lower()
    if given not in _KINDS:
        raise Unmodelled(f"the reduction {given!r}")
    return _KINDS[given]


def _all_reduce(op: Operation) -> Wire:
    return op.emit.emit("all_reduce", op.tensor("input"), attrs={"kind": _kind(op), "groups": _groups(op)})


def _all_gather(op: Operation) -> Wire:
    return op.emit.emit("all_gather", op.tensor("input"), attrs={"dim": 0, "groups": _groups(op)})


def _reduce_scatter(op: Operation) -> Wire:
    attrs: dict[str, Attr] = {"kind": _kind(op), "dim": 0, "groups": _groups(op)}
    return op.emit.emit("reduce_scatter", op.tensor("input"), attrs=attrs)


def _all_to_all(op: Operation) -> Wire:
    """Equal parts only: parts of their own sizes mean another program on each rank."""
    given, taken = op.integers("input_split_sizes"), op.integers("output_split_sizes")
    groups = _groups(op)
    if len(set(given)) > 1 or len(set(taken)) > 1 or len(given) != len(groups[0]):
        raise Unmodelled("an all-to-all of unequal parts")
    attrs: dict[str, Attr] = {"split_dim": 0, "concat_dim": 0, "groups": groups}
    return op.emit.emit("all_to_all", op.tensor("input"), attrs=attrs)


def _broadcast(op: Operation) -> Wire:
    return op.emit.emit(
        "broadcast_from", op.tensor("input"), attrs={"root": op.integer("src"), "groups": _groups(op)}
    )


COLLECTIVES: Meanings = MappingProxyType({
    "_c10d_functional.all_reduce": _all_reduce,
    "_c10d_functional.all_gather_into_tensor": _all_gather,
    "_c10d_functional.reduce_scatter_tensor": _reduce_scatter,
    "_c10d_functional.all_to_all_single": _all_to_all,
    "_c10d_functional.broadcast": _broadcast,
    "_c10d_functional.wait_tensor": lambda op: op.tensor("tensor"),
})  # fmt: skip
