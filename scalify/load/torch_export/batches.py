"""A batch of messages as one call for each of them."""

from dataclasses import replace
from types import MappingProxyType

from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.program import Argument, Call

BATCH = "_c10d_functional.batch_p2p_ops.default"
_PEERS = {"isend": "dst", "irecv": "src"}


def one_by_one(call: Call) -> tuple[Call, ...]:
    """The messages of a batch in order; any other call alone."""
    if call.target != BATCH:
        return (call,)
    names = ("op_list", "peer_list", "tag_list", "tensors")
    columns = [_column(call, name) for name in names]
    if len({len(column) for column in (*columns, call.results)}) != 1:
        raise damaged(f"{call.name} is a batch of messages whose parts are not as many")
    return tuple(_single(call, place, *row) for place, row in enumerate(zip(*columns, strict=True)))


def _column(call: Call, name: str) -> tuple[Argument, ...]:
    given = call.arguments.get(name)
    if not isinstance(given, tuple):
        raise damaged(f"argument {name} of {call.name} is no list")
    return given


def _single(call: Call, place: int, kind: Argument, peer: Argument, tag: Argument, tensor: Argument) -> Call:
    if not isinstance(kind, str) or kind not in _PEERS:
        raise damaged(f"{call.name} has a message of kind {kind!r}")
    arguments = {
        "tensor": tensor,
        _PEERS[kind]: peer,
        "tag": tag,
        "group_name": call.arguments.get("group_name"),
    }
    return replace(
        call,
        name=f"{call.name}.{place}",
        target=f"_c10d_functional.{kind}.default",
        arguments=MappingProxyType(arguments),
        results=(call.results[place],),
    )
