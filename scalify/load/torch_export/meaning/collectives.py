"""Functional collectives. Waiting for one is nothing: values here have no time.

Process groups are names in the graph; the file says beside it how each cuts up the mesh. A name that
nothing is said of makes the collective opaque.
"""

from collections.abc import Callable
from types import MappingProxyType

from scalify.errors import InvalidGraph
from scalify.ir.graph import Attr, TensorType
from scalify.ir.mesh import Groups
from scalify.load.messages import RECEIVE, SEND, message_config
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.meaning.movement import cut
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


def _all_reduce(op: Operation, wire: Wire) -> Wire:
    return op.emit.emit("all_reduce", wire, attrs={"kind": _kind(op), "groups": _groups(op)})


def _all_gather(op: Operation, wire: Wire) -> Wire:
    return op.emit.emit("all_gather", wire, attrs={"dim": 0, "groups": _groups(op)})


def _reduce_scatter(op: Operation, wire: Wire) -> Wire:
    attrs: dict[str, Attr] = {"kind": _kind(op), "dim": 0, "groups": _groups(op)}
    return op.emit.emit("reduce_scatter", wire, attrs=attrs)


def _all_to_all(op: Operation) -> Wire:
    """Of equal parts, one node; of others, a message to each member that has a part."""
    given, taken = op.integers("input_split_sizes"), op.integers("output_split_sizes")
    groups, wire = _groups(op), op.tensor("input")
    if len(given) != len(groups[0]) or len(taken) != len(given) or min(*given, *taken) < 0:
        raise damaged(f"{op.call.name} exchanges {len(given)} parts within groups of {len(groups[0])}")
    if sum(given) != wire.shape[0]:
        raise InvalidGraph(
            f"the parts {list(given)} of {wire.shape[0]} rows are not the whole",
            hint="split sizes count along the first dimension, not elements",
        )
    if len({*given, *taken}) == 1:
        attrs: dict[str, Attr] = {"split_dim": 0, "concat_dim": 0, "groups": groups}
        return op.emit.emit("all_to_all", wire, attrs=attrs)
    for member, (part, size) in enumerate(zip(cut(op, wire, 0, given), given, strict=True)):
        if size:
            _passed(op, SEND, member, part.type, part)
    parts = [
        _passed(op, RECEIVE, member, TensorType(wire.dtype, (size, *wire.shape[1:])))
        for member, size in enumerate(taken)
        if size
    ]
    return op.emit.concat(parts, 0) if parts else op.emit.constant(wire.dtype, 0, op.result.shape)


def _passed(op: Operation, target: str, member: int, made: TensorType, *part: Wire) -> Wire:
    attrs: dict[str, Attr] = {"target": target, "config": message_config(member, 0, _groups(op))}
    return op.emit.emit("opaque", *part, declared=made, attrs=attrs)


def _broadcast(op: Operation) -> Wire:
    return op.emit.emit(
        "broadcast_from", op.tensor("input"), attrs={"root": op.integer("src"), "groups": _groups(op)}
    )


def _single(collective: Callable[[Operation, Wire], Wire]) -> Meaning:
    return lambda op: collective(op, op.tensor("input"))


def _each(collective: Callable[[Operation, Wire], Wire]) -> Meaning:
    """Several tensors at once: one collective for each."""
    return lambda op: [collective(op, wire) for wire in op.tensors("inputs")]


def _message(name: str, peer: str) -> Meaning:
    """To or from one other rank, which is not known here."""

    def meaning(op: Operation) -> Wire:
        operands = (op.tensor("tensor"),) if name == SEND else ()
        config = message_config(op.integer(peer), op.integer("tag", 0))
        attrs: dict[str, Attr] = {"target": name, "config": config}
        return op.emit.emit("opaque", *operands, declared=op.result, attrs=attrs)

    return meaning


COLLECTIVES: Meanings = MappingProxyType({
    "_c10d_functional.all_reduce": _single(_all_reduce),
    "_c10d_functional.all_reduce_coalesced": _each(_all_reduce),
    "_c10d_functional.all_gather_into_tensor": _single(_all_gather),
    "_c10d_functional.all_gather_into_tensor_coalesced": _each(_all_gather),
    "_c10d_functional.reduce_scatter_tensor": _single(_reduce_scatter),
    "_c10d_functional.reduce_scatter_tensor_coalesced": _each(_reduce_scatter),
    "_c10d_functional.all_to_all_single": _all_to_all,
    "_c10d_functional.broadcast": _broadcast,
    "_c10d_functional.isend": _message(SEND, "dst"),
    "_c10d_functional.irecv": _message(RECEIVE, "src"),
    "_c10d_functional.wait_tensor": lambda op: op.tensor("tensor"),
})  # fmt: skip
