"""Collectives along any dimension, out of those along the first and the moves around them.

PyTorch's functional collectives know the first dimension only: a gather along another is a gather, cut
and put together again. Where pieces and group fit exactly, that is one node here::

    concat{1}(slices of all_gather{0}(x))        ->  all_gather{1}(x)
    reduce_scatter{0}(concat{0}(slices of x))    ->  reduce_scatter{1}(x)
    concat{2}(slices of all_to_all{s, 0}(x))     ->  all_to_all{s, 2}(x)
    all_to_all{0, 0}(concat{0}(slices of x))     ->  all_to_all{1, 0}(x)

Anything that fits less stays as it is, which means the same.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from scalify.ir.graph import Attr, Node, NodeId


def along_any_dim(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same graph; every replaced node keeps its id and type."""
    made: dict[NodeId, Node] = {}
    for node in nodes:
        made[node.id] = _gathered(node, made) or _scattered(node, made) or node
    return tuple(made.values())


def _gathered(node: Node, made: Mapping[NodeId, Node]) -> Node | None:
    """A concat of a collective's pieces along the first dimension."""
    if node.op != "concat" or node.attrs["axis"] == 0:
        return None
    found = _pieces(node, made)
    if found is None or found[1] != 0:
        return None
    source = made[found[0]]
    if source.op == "all_gather" and source.attrs["dim"] == 0 and _members(source) == len(node.operands):
        return _turned(node, source, {"dim": node.attrs["axis"]})
    if (
        source.op == "all_to_all"
        and source.attrs["concat_dim"] == 0
        and _members(source) == len(node.operands)
    ):
        return _turned(node, source, {"concat_dim": node.attrs["axis"]})
    return None


def _scattered(node: Node, made: Mapping[NodeId, Node]) -> Node | None:
    """A collective of pieces that were put together along the first dimension."""
    name = {"reduce_scatter": "dim", "all_to_all": "split_dim"}.get(node.op)
    if name is None or node.attrs[name] != 0:
        return None
    joined = made[node.operands[0]]
    if joined.op != "concat" or joined.attrs["axis"] != 0 or len(joined.operands) != _members(node):
        return None
    found = _pieces(joined, made)
    if found is None or found[1] == 0:
        return None
    source, axis = found
    return replace(node, operands=(source,), attrs=MappingProxyType({**node.attrs, name: axis}))


def _turned(node: Node, collective: Node, attrs: Mapping[str, Attr]) -> Node:
    return replace(
        node,
        op=collective.op,
        operands=collective.operands,
        attrs=MappingProxyType({**collective.attrs, **attrs}),
        site=collective.site,
        stack=collective.stack,
        scope=collective.scope,
    )


def _members(collective: Node) -> int:
    groups = collective.attrs["groups"]
    first = groups[0] if isinstance(groups, tuple) else ()
    return len(first) if isinstance(first, tuple) else 0


def _pieces(joined: Node, made: Mapping[NodeId, Node]) -> tuple[NodeId, int] | None:
    """What the operands of a concat are the equal pieces of, in order and complete, and along which axis."""
    parts = [made[operand] for operand in joined.operands]
    if any(part.op != "slice" or part.operands != parts[0].operands for part in parts):
        return None
    source = made[parts[0].operands[0]]
    shape = source.type.shape
    cut = [axis for axis, size in enumerate(shape) if parts[0].type.shape[axis] != size]
    if len(cut) != 1:
        return None
    axis, width = cut[0], parts[0].type.shape[cut[0]]
    if width * len(parts) != shape[axis]:
        return None
    for number, part in enumerate(parts):
        starts = tuple(number * width if dim == axis else 0 for dim in range(len(shape)))
        if (
            part.attrs["starts"] != starts
            or part.type != parts[0].type
            or set(_ints(part.attrs["steps"])) != {1}
        ):
            return None
    return source.id, axis


def _ints(value: Attr) -> tuple[Attr, ...]:
    return value if isinstance(value, tuple) else ()
