"""Mistakes in what ranks exchange: sums that are missing, taken twice, elsewhere, or by other ranks."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import cast

from graph_edits import Edit, Wrong, readers

from scalify.ir.graph import Attr, Graph, Node, NodeId
from scalify.ir.mesh import Groups, RankInt, groups_along
from scalify.ir.ops.dtypes import KIND_OF

Mistakes = Iterator[tuple[str, Wrong | None]]

LINEAR = frozenset({"add", "sub", "mul", "div", "neg", "reshape", "transpose", "slice", "cast", "broadcast"})
SUMS = ("all_reduce", "reduce_scatter")


def missing_collective(graph: Graph) -> Mistakes:
    """The ranks' values are used as they are, in the shape that was wanted."""
    for node in graph.nodes:
        if node.op == "all_reduce":
            edit = Edit(graph)
            edit.read_instead(node.id, node.operands[0])
            yield node.id, edit.done()
        elif node.op == "reduce_scatter":
            edit = Edit(graph)
            edit.read_instead(node.id, _own_piece(edit, node))
            yield node.id, edit.done()
        elif node.op == "all_gather":
            edit = Edit(graph)
            own = (node.operands[0],) * len(_groups(node)[0])
            made = edit.after(node.id, "concat", *own, axis=cast(int, node.attrs["dim"]))
            edit.read_instead(node.id, made)
            yield node.id, edit.done()
        elif node.op in ("all_to_all", "permute") and _type(graph, node.operands[0]) == node.type.shape:
            edit = Edit(graph)
            edit.read_instead(node.id, node.operands[0])
            yield node.id, edit.done()


def _own_piece(edit: Edit, node: Node) -> NodeId:
    """The part of the rank's own value that it would have had of the sum."""
    dim, groups = cast(int, node.attrs["dim"]), _groups(node)
    size = node.type.shape[dim]
    stride = groups[0][1] - groups[0][0] if len(groups[0]) > 1 else 1
    start = RankInt(base=0, terms=((stride, len(groups[0]), size),))
    stop = RankInt(base=size, terms=((stride, len(groups[0]), size),))
    shape = node.type.shape
    starts: tuple[Attr, ...] = tuple(start if d == dim else 0 for d in range(len(shape)))
    limits: tuple[Attr, ...] = tuple(stop if d == dim else n for d, n in enumerate(shape))
    steps = (1,) * len(shape)
    return edit.after(node.id, "slice", node.operands[0], starts=starts, limits=limits, steps=steps)


def collective_twice(graph: Graph) -> Mistakes:
    """A sum is taken of sums."""
    for node in graph.nodes:
        if node.op == "all_reduce":
            edit = Edit(graph)
            made = edit.after(node.id, "all_reduce", node.id, kind=node.attrs["kind"], groups=_groups(node))
            edit.read_instead(node.id, made)
            yield node.id, edit.done()


def wrong_operator(graph: Graph) -> Mistakes:
    """An average or a maximum for a sum."""
    for node in graph.nodes:
        if node.op in SUMS:
            for kind in ("avg", "max", "min"):
                edit = Edit(graph)
                edit.change(node.id, attrs={"kind": kind})
                yield f"{node.id} {kind}", edit.done()


def wrong_group(graph: Graph) -> Mistakes:
    """Other ranks, fewer, or the same in another order."""
    for node in graph.nodes:
        if "groups" not in node.attrs:
            continue
        known = _groups(node)
        for groups in _partitions(graph):
            if groups == known or (node.op != "all_reduce" and len(groups[0]) != len(known[0])):
                continue
            edit = Edit(graph)
            edit.change(node.id, attrs={"groups": groups})
            yield f"{node.id} {groups}", edit.done()


def _partitions(graph: Graph) -> Sequence[Groups]:
    mesh = graph.mesh
    alone = tuple((rank,) for rank in range(mesh.size))
    along = [groups_along(mesh, (name,)) for name, _ in mesh.axes]
    whole: Groups = (tuple(range(mesh.size)),)
    back = [tuple(tuple(reversed(group)) for group in groups) for groups in along]
    return [alone, whole, *along, *back]


def partial_as_whole(graph: Graph) -> Mistakes:
    """One of those that read a sum over ranks reads the rank's own term."""
    for node in graph.nodes:
        users = readers(graph, node.id) if node.op == "all_reduce" else ()
        for user in users if len(users) > 1 else ():
            edit = Edit(graph)
            edit.read_instead(node.id, node.operands[0], [user.id])
            yield f"{user.id} reads {node.operands[0]}", edit.done()


def whole_as_partial(graph: Graph) -> Mistakes:
    """What all ranks hold, or what stands for other tokens on each, is summed over ranks."""
    axes = [groups_along(graph.mesh, (name,)) for name, size in graph.mesh.axes if size > 1]
    for node in graph.nodes:
        computed = node.op not in ("input", "constant", "iota", "rank") and node.type.dtype == "f32"
        for groups in axes if computed and node.type.shape else ():
            edit = Edit(graph)
            edit.read_instead(node.id, edit.after(node.id, "all_reduce", node.id, kind="sum", groups=groups))
            yield f"{node.id} over {groups}", edit.done()


def nonlinear_on_partial(graph: Graph) -> Mistakes:
    """A sum over ranks is taken behind what is no sum, instead of before it."""
    for node, user in _behind_sums(graph):
        if user.op not in LINEAR:
            yield f"{user.id} before {node.id}", _summed_behind(graph, node, user)


def added_to_partial(graph: Graph) -> Mistakes:
    """A bias or residual is added on every rank, before the sum."""
    for node, user in _behind_sums(graph):
        if user.op in ("add", "sub"):
            yield f"{user.id} before {node.id}", _summed_behind(graph, node, user)


def sum_behind_a_factor(graph: Graph) -> Mistakes:
    """A sum is taken behind a multiplication instead of before it, which is right."""
    for node, user in _behind_sums(graph):
        if user.op in ("mul", "div") and node.id == user.operands[0]:
            yield f"{user.id} before {node.id}", _summed_behind(graph, node, user)


def _behind_sums(graph: Graph) -> Iterator[tuple[Node, Node]]:
    for node in graph.nodes:
        if node.op in SUMS:
            for user in readers(graph, node.id):
                same = prod(user.type.shape) and KIND_OF[user.type.dtype] == "float"
                if same and user.op not in SUMS:
                    yield node, user


def _summed_behind(graph: Graph, node: Node, user: Node) -> Wrong | None:
    """``user`` reads the rank's own term, and who reads ``user`` reads the sum over ranks of its results."""
    if node.op != "all_reduce":
        return None
    edit = Edit(graph)
    edit.read_instead(node.id, node.operands[0], [user.id])
    made = edit.after(user.id, "all_reduce", user.id, kind=node.attrs["kind"], groups=_groups(node))
    edit.read_instead(user.id, made)
    return edit.done()


def mean_of_means(graph: Graph) -> Mistakes:
    """A ratio of sums over ranks becomes the mean of the ranks' ratios."""
    nodes = graph.by_id()
    for node in graph.nodes:
        if node.op != "div":
            continue
        above, below = (nodes[operand] for operand in node.operands)
        if above.op == below.op == "all_reduce":
            edit = Edit(graph)
            own = edit.before(node.id, "div", above.operands[0], below.operands[0])
            made = edit.after(node.id, "all_reduce", own, kind="avg", groups=_groups(above))
            edit.read_instead(node.id, made)
            yield node.id, edit.done()


def _groups(node: Node) -> Groups:
    return cast(Groups, node.attrs["groups"])


def _type(graph: Graph, value: str) -> tuple[int, ...]:
    return next(node.type.shape for node in graph.nodes if node.id == value)
