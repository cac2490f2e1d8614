"""Mistakes in where numbers lie: shards, parts of fused weights, heads, reshapes, positions, masks."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import cast

from graph_edits import Edit, readers
from wrong_collectives import Mistakes

from scalify.ir.graph import Attr, Graph, Node, NodeId
from scalify.ir.mesh import RankInt
from scalify.ir.ops.dtypes import KIND_OF

LOOSER = {"lt": "le", "le": "lt", "ge": "gt", "gt": "ge"}
Starts = tuple[int | RankInt, ...]


def wrong_shard(graph: Graph) -> Mistakes:
    """Every rank takes the first one's part, or parts are taken back to front, or by another axis."""
    axes = graph.mesh.placed()
    for node in graph.nodes:
        for name in ("starts", "data"):
            values = node.attrs.get(name)
            if not isinstance(values, tuple) or not any(isinstance(each, RankInt) for each in values):
                continue
            for label, changed in _other_ranks(cast(Starts, values), [(a.stride, a.size) for a in axes]):
                edit = Edit(graph)
                edit.change(node.id, attrs=_moved(node, name, changed))
                yield f"{node.id} {label}", edit.done()


def _other_ranks(values: Starts, axes: list[tuple[int, int]]) -> Iterator[tuple[str, Starts]]:
    yield "of rank 0", tuple(each.base if isinstance(each, RankInt) else each for each in values)
    yield "back to front", tuple(_reversed(each) if isinstance(each, RankInt) else each for each in values)
    for stride, size in axes:
        yield (
            f"by another axis ({stride}, {size})",
            tuple(
                replace(each, terms=tuple((stride, size, factor) for _, _, factor in each.terms[:1]))
                if isinstance(each, RankInt)
                else each
                for each in values
            ),
        )


def _reversed(value: RankInt) -> RankInt:
    total = sum(factor * (size - 1) for _, size, factor in value.terms)
    return RankInt(base=value.base + total, terms=tuple((s, n, -factor) for s, n, factor in value.terms))


def _moved(node: Node, name: str, values: Starts) -> Mapping[str, Attr]:
    """A window keeps its size."""
    if name == "data":
        return {"data": values}
    old, limits = cast(Starts, node.attrs["starts"]), cast(Starts, node.attrs["limits"])
    sizes = [_at_first(limit) - _at_first(start) for start, limit in zip(old, limits, strict=True)]
    moved = tuple(
        replace(start, base=start.base + size) if isinstance(start, RankInt) else start + size
        for start, size in zip(values, sizes, strict=True)
    )
    return {"starts": values, "limits": moved}


def _at_first(value: int | RankInt) -> int:
    return value.base if isinstance(value, RankInt) else value


def wrong_part(graph: Graph) -> Mistakes:
    """Parts of a fused value trade places (gate and up, query and key), or are taken as if interleaved."""
    slices = [node for node in graph.nodes if node.op == "slice"]
    for node in slices:
        for other in slices:
            is_pair = node.operands == other.operands and node.type == other.type
            if is_pair and node.attrs["starts"] != other.attrs["starts"]:
                edit = Edit(graph)
                edit.change(node.id, attrs={name: other.attrs[name] for name in ("starts", "limits")})
                yield f"{node.id} is {other.id}'s", edit.done()
        yield from _interleaved(graph, node)


def _interleaved(graph: Graph, node: Node) -> Mistakes:
    """Of ``n`` equal blocks, every n-th element is taken for the i-th block."""
    shape = next(each.type.shape for each in graph.nodes if each.id == node.operands[0])
    starts = cast(Starts, node.attrs["starts"])
    for dim, (whole, size) in enumerate(zip(shape, node.type.shape, strict=True)):
        start = starts[dim]
        if not isinstance(start, int) or size in (0, whole) or whole % size or start % size:
            continue
        count = whole // size
        edit = Edit(graph)
        edit.change(
            node.id,
            attrs={
                name: tuple(
                    new if d == dim else each for d, each in enumerate(cast(Starts, node.attrs[name]))
                )
                for name, new in (("starts", start // size), ("limits", whole), ("steps", count))
            },
        )
        yield f"{node.id} interleaved", edit.done()


def wrong_heads(graph: Graph) -> Mistakes:
    """Query heads read other key heads than theirs: in turn instead of in blocks, or back to front."""
    nodes = graph.by_id()
    for node in graph.nodes:
        if node.op == "attention":
            edit = Edit(graph)
            turned = edit.before(node.id, "reverse", node.operands[1], axes=(1,))
            edit.change(node.id, operands=(node.operands[0], turned, *node.operands[2:]))
            yield f"{node.id} back to front", edit.done()
        source = nodes[node.operands[0]] if node.op == "reshape" else node
        if source.op != "broadcast":
            continue
        shape = source.type.shape
        for dim in range(len(shape) - 1):
            merged = (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :])
            if merged == node.type.shape and 1 not in shape[dim : dim + 2]:
                edit = Edit(graph)
                perm = (*range(dim), dim + 1, dim, *range(dim + 2, len(shape)))
                edit.change(node.id, operands=(edit.before(node.id, "transpose", source.id, perm=perm),))
                yield f"{node.id} in turn", edit.done()


def illegal_reshape(graph: Graph) -> Mistakes:
    """A reshape where a transposition was wanted, or without the one before it."""
    nodes = graph.by_id()
    for node in graph.nodes:
        if node.op == "transpose":
            edit = Edit(graph)
            made = edit.after(node.id, "reshape", node.operands[0], shape=node.type.shape)
            edit.read_instead(node.id, made)
            yield f"{node.id} is a reshape", edit.done()
        if node.op == "reshape" and nodes[node.operands[0]].op == "transpose":
            edit = Edit(graph)
            edit.change(node.id, operands=nodes[node.operands[0]].operands)
            yield f"{node.id} without its transposition", edit.done()


def wrong_order(graph: Graph) -> Mistakes:
    """Pieces are put together in another order, or two equal dimensions trade places, or one is reversed."""
    for node in graph.nodes:
        if node.op == "concat" and len({*node.operands}) > 1:
            edit = Edit(graph)
            edit.change(node.id, operands=node.operands[::-1])
            yield f"{node.id} back to front", edit.done()
        if node.op == "einsum":
            for position, operand in enumerate(node.operands):
                yield from _transposed(graph, node, position, operand)
        if node.op in ("all_gather", "reduce_scatter", "all_to_all"):
            dim = cast(int, node.attrs.get("dim", node.attrs.get("concat_dim")))
            edit = Edit(graph)
            edit.read_instead(node.id, edit.after(node.id, "reverse", node.id, axes=(dim,)))
            yield f"{node.id} reversed", edit.done()


def _transposed(graph: Graph, node: Node, position: int, operand: NodeId) -> Mistakes:
    shape = next(each.type.shape for each in graph.nodes if each.id == operand)
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] == 1:
        return
    edit = Edit(graph)
    perm = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    turned = edit.before(node.id, "transpose", operand, perm=perm)
    edit.change(node.id, operands=(*node.operands[:position], turned, *node.operands[position + 1 :]))
    yield f"{node.id} operand {position} transposed", edit.done()


def wrong_rotation(graph: Graph) -> Mistakes:
    """Halves of a head are paired the wrong way round, with the wrong sign, or sines taken for cosines."""
    nodes = graph.by_id()
    for node in graph.nodes:
        if node.op in ("sin", "cos"):
            edit = Edit(graph)
            edit.change(node.id, op="cos" if node.op == "sin" else "sin")
            yield f"{node.id} is the other", edit.done()
        turned = node.op == "concat" and any(nodes[operand].op == "neg" for operand in node.operands)
        if turned:
            edit = Edit(graph)
            edit.change(node.id, operands=node.operands[::-1])
            yield f"{node.id} halves trade places", edit.done()
            edit = Edit(graph)
            plain = tuple(nodes[o].operands[0] if nodes[o].op == "neg" else o for o in node.operands)
            edit.change(node.id, operands=plain)
            yield f"{node.id} without the sign", edit.done()


def wrong_positions(graph: Graph) -> Mistakes:
    """Positions, or what is counted from them, are one further on for one of those that read them."""
    for node in graph.nodes:
        if node.op != "iota":
            continue
        for user in readers(graph, node.id):
            edit = Edit(graph)
            one = edit.before(user.id, "constant", shape=(), dtype=node.type.dtype, data=(1,))
            later = edit.before(user.id, "add", node.id, one)
            edit.read_instead(node.id, later, [user.id])
            yield f"{user.id} one later", edit.done()


def wrong_mask(graph: Graph) -> Mistakes:
    """A limit is missed by one, a window is as well, or what is ahead is not hidden."""
    nodes = graph.by_id()
    for node in graph.nodes:
        if node.op in LOOSER:
            edit = Edit(graph)
            edit.change(node.id, op=LOOSER[node.op])
            yield f"{node.id} is {LOOSER[node.op]}", edit.done()
            for operand in node.operands:
                data = nodes[operand].attrs.get("data")
                whole = nodes[operand].op == "constant" and KIND_OF[nodes[operand].type.dtype] == "int"
                if whole and isinstance(data, tuple) and prod(nodes[operand].type.shape) == 1:
                    edit = Edit(graph)
                    number = data[0]
                    later = replace(number, base=number.base + 1) if isinstance(number, RankInt) else None
                    edit.change(operand, attrs={"data": (later or cast(int, number) + 1,)})
                    yield f"{operand} one later", edit.done()
        for name, value in node.attrs.items():
            if name == "causal" or (node.op in ("tril", "triu") and name == "k"):
                edit = Edit(graph)
                edit.change(node.id, attrs={name: not value if name == "causal" else cast(int, value) + 1})
                yield f"{node.id} {name}", edit.done()
        if node.op in ("or", "and") and KIND_OF[node.type.dtype] == "bool":
            for operand in node.operands:
                if nodes[operand].type == node.type:
                    edit = Edit(graph)
                    edit.read_instead(node.id, operand)
                    yield f"{node.id} is {operand} alone", edit.done()
