"""Functional collectives. Waiting for one is nothing: values here have no time.

Process groups are names in the graph; the file says beside it how each cuts up the mesh. A name that
nothing is said of makes the collective opaque.
"""

from types import MappingProxyType

from scalify.ir.graph import Attr
from scalify.ir.mesh import Groups
from scalify.load.messages import RECEIVE, SEND, message_config
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.operation import Meaning, Meanings, Operation, Unmodelled

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


def _message(name: str, peer: str) -> Meaning:
    """To or from one other rank, which is not known here."""

    def meaning(op: Operation) -> Wire:
        operands = (op.tensor("tensor"),) if name == SEND else ()
        config = message_config(op.integer(peer), op.integer("tag", 0))
        attrs: dict[str, Attr] = {"target": name, "config": config}
        return op.emit.emit("opaque", *operands, declared=op.result, attrs=attrs)

    return meaning


COLLECTIVES: Meanings = MappingProxyType({
    "_c10d_functional.all_reduce": _all_reduce,
    "_c10d_functional.all_gather_into_tensor": _all_gather,
    "_c10d_functional.reduce_scatter_tensor": _reduce_scatter,
    "_c10d_functional.all_to_all_single": _all_to_all,
    "_c10d_functional.broadcast": _broadcast,
    "_c10d_functional.isend": _message(SEND, "dst"),
    "_c10d_functional.irecv": _message(RECEIVE, "src"),
    "_c10d_functional.wait_tensor": lambda op: op.tensor("tensor"),
})  # fmt: skip
