"""What each op says of how its dimensions may shrink; an op that is not known here keeps all lengths."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import cast

from scalify.ir.graph import Attr, Graph, Node, NodeId
from scalify.ir.mesh import RankInt
from scalify.ir.ops.elementwise import ELEMENTWISE
from scalify.refute.shrink.classes import Classes, Dim

POINTWISE = frozenset(op.name for op in ELEMENTWISE)
ALONG = frozenset({
    "softmax", "log_softmax", "layer_norm", "rms_norm", "cumsum", "cumprod", "sort", "argsort", "tril",
    "triu", "reverse", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute",
    "broadcast_from",
})  # fmt: skip
"""Ops whose result has its operand's dimensions, one for one."""

REDUCING = frozenset({"reduce", "argmax", "argmin", "logsumexp"})


@dataclass(frozen=True, slots=True)
class Site:
    """One node among the classes. ``inner`` says that of a dimension cut in two the inner one shrinks."""

    side: int
    node: Node
    shapes: tuple[tuple[int, ...], ...]
    classes: Classes
    inner: bool

    def own(self, dim: int) -> Dim:
        """A dimension of the result."""
        return Dim(self.side, self.node.id, dim)

    def of(self, operand: int, dim: int) -> Dim:
        """A dimension of an operand."""
        return Dim(self.side, self.node.operands[operand], dim)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result."""
        return self.node.type.shape

    def integers(self, name: str) -> tuple[int | RankInt, ...]:
        """An attribute that is a tuple of whole numbers."""
        return cast("tuple[int | RankInt, ...]", self.node.attrs[name])


def constrain(side: int, graph: Graph, classes: Classes, *, inner: bool) -> None:
    """Add a graph's dimensions and what its ops say of them."""
    types: dict[NodeId, tuple[int, ...]] = {}
    for node in graph.nodes:
        types[node.id] = node.type.shape
        for dim, length in enumerate(node.type.shape):
            classes.add(Dim(side, node.id, dim), length)
        site = Site(side, node, tuple(types[operand] for operand in node.operands), classes, inner)
        _RULES.get(node.op, _rule_of(node.op))(site)


def _rule_of(op: str) -> Callable[[Site], None]:
    if op in POINTWISE:
        return _pointwise
    if op in ALONG:
        return _along
    return _reducing if op in REDUCING else _fixed


def _fixed(site: Site) -> None:
    for dim in range(len(site.shape)):
        site.classes.fix(site.own(dim))
    for operand, shape in enumerate(site.shapes):
        for dim in range(len(shape)):
            site.classes.fix(site.of(operand, dim))


def _free(site: Site) -> None:
    del site


def _constant(site: Site) -> None:
    data = site.node.attrs.get("data")
    if not isinstance(data, tuple) or len(cast("tuple[Attr, ...]", data)) > 1:
        _fixed(site)


def _pointwise(site: Site) -> None:
    rank = len(site.shape)
    for operand, shape in enumerate(site.shapes):
        for dim, length in enumerate(shape):
            if length == site.shape[dim + rank - len(shape)]:
                site.classes.join(site.of(operand, dim), site.own(dim + rank - len(shape)))


def _along(site: Site) -> None:
    for dim in range(len(site.shape)):
        site.classes.join(site.of(0, dim), site.own(dim))
    axes = cast("tuple[int, ...]", site.node.attrs.get("axes", ()))
    for operand in range(1, len(site.shapes)):
        for place, dim in enumerate(axes):
            site.classes.join(site.of(operand, place), site.own(dim))


def _reducing(site: Site) -> None:
    axes = site.node.attrs.get("axes", (site.node.attrs.get("axis"),))
    reduced = {axis % len(site.shapes[0]) for axis in cast("tuple[int, ...]", axes)}
    own = 0
    for dim in range(len(site.shapes[0])):
        if dim in reduced:
            own += bool(site.node.attrs.get("keepdims"))
            continue
        site.classes.join(site.of(0, dim), site.own(own))
        own += 1


def _transpose(site: Site) -> None:
    for dim, source in enumerate(cast("tuple[int, ...]", site.node.attrs["perm"])):
        site.classes.join(site.of(0, source), site.own(dim))


def _broadcast(site: Site) -> None:
    for source, dim in enumerate(cast("tuple[int, ...]", site.node.attrs["dims"])):
        if site.shapes[0][source] == site.shape[dim]:
            site.classes.join(site.of(0, source), site.own(dim))


def _slice(site: Site) -> None:
    names = ("starts", "limits", "steps")
    for dim, (start, limit, step) in enumerate(zip(*map(site.integers, names), strict=True)):
        if site.shape[dim] == 1:
            continue
        site.classes.join(site.of(0, dim), site.own(dim))
        site.classes.hold(site.own(dim), (start, limit))
        if step != 1:
            site.classes.fix(site.own(dim))


def _update_slice(site: Site) -> None:
    for dim, start in enumerate(site.integers("starts")):
        site.classes.join(site.of(0, dim), site.own(dim))
        site.classes.join(site.of(1, dim), site.own(dim))
        site.classes.hold(site.own(dim), (start,))


def _concat(site: Site) -> None:
    for operand in range(len(site.shapes)):
        for dim in range(len(site.shape)):
            site.classes.join(site.of(operand, dim), site.own(dim))


def _pad(site: Site) -> None:
    for dim, (low, high) in enumerate(zip(site.integers("low"), site.integers("high"), strict=True)):
        site.classes.join(site.of(0, dim), site.own(dim))
        if low or high:
            site.classes.fix(site.own(dim))


def _einsum(site: Site) -> None:
    left, _, right = str(site.node.attrs["spec"]).partition("->")
    known: dict[str, Dim] = {letter: site.own(dim) for dim, letter in enumerate(right)}
    for operand, letters in enumerate(left.split(",")):
        for dim, letter in enumerate(letters):
            site.classes.join(known.setdefault(letter, site.of(operand, dim)), site.of(operand, dim))


def _take(site: Site) -> None:
    axis, indices = cast(int, site.node.attrs["axis"]), len(site.shapes[1])
    for dim in range(len(site.shapes[0])):
        if dim != axis:
            site.classes.join(site.of(0, dim), site.own(dim if dim < axis else dim + indices - 1))
    for dim in range(indices):
        site.classes.join(site.of(1, dim), site.own(axis + dim))


def _take_along(site: Site) -> None:
    axis = cast(int, site.node.attrs["axis"])
    for dim in range(len(site.shape)):
        site.classes.join(site.of(1, dim), site.own(dim))
        if dim != axis:
            site.classes.join(site.of(0, dim), site.own(dim))


def _attention(site: Site) -> None:
    q, kv, last = len(site.shape) - 3, len(site.shapes[1]) - 3, len(site.shape) - 1
    for dim in range(len(site.shape) - 1):
        site.classes.join(site.of(0, dim), site.own(dim))
    for dim in range(q):
        site.classes.join(site.of(1, dim), site.own(dim))
        site.classes.join(site.of(2, dim), site.own(dim))
    for operand in (0, 1, 2):
        site.classes.fix(site.of(operand, q))  # how many query heads share a key head stays as it is
    site.classes.join(site.of(1, kv + 1), site.of(2, kv + 1))
    site.classes.join(site.of(0, last), site.of(1, last))
    site.classes.join(site.of(2, last), site.own(last))
    if len(site.shapes) == 4:
        _mask(site)


def _mask(site: Site) -> None:
    rank, shape = len(site.shape), site.shapes[3]
    scores = (*(site.of(0, dim) for dim in range(rank - 1)), site.of(1, rank - 2))
    lengths = (*site.shapes[0][:-1], site.shapes[1][-2])
    for dim, length in enumerate(shape):
        place = dim + rank - len(shape)
        if length == lengths[place]:
            site.classes.join(site.of(3, dim), scores[place])


def _cross_entropy(site: Site) -> None:
    site.classes.join(site.of(0, 0), site.of(1, 0))
    for dim in range(len(site.shape)):
        site.classes.join(site.own(dim), site.of(1, dim))


def _one_hot(site: Site) -> None:
    for dim in range(len(site.shapes[0])):
        site.classes.join(site.of(0, dim), site.own(dim))


def _reshape(site: Site) -> None:
    """Of a dimension that is cut into several, one shrinks with it and the others stay; likewise joined."""
    for ours, theirs in _groups(site.shape, site.shapes[0]):
        own = [site.own(dim) for dim in ours if site.shape[dim] > 1]
        given = [site.of(0, dim) for dim in theirs if site.shapes[0][dim] > 1]
        if not own or not given:
            continue
        place = -1 if site.inner else 0
        site.classes.join(own[place], given[place])
        for dim in (*(own[:-1] if site.inner else own[1:]), *(given[:-1] if site.inner else given[1:])):
            site.classes.fix(dim)


def _groups(one: tuple[int, ...], other: tuple[int, ...]) -> Iterator[tuple[range, range]]:
    """The smallest runs of dimensions on both sides that hold equally many elements."""
    start, begin, end, stop = 0, 0, 0, 0
    while end < len(one) or stop < len(other):
        if prod(one[start:end]) <= prod(other[begin:stop]) and end < len(one):
            end += 1
        elif stop < len(other):
            stop += 1
        else:
            end += 1
        if end > start and stop > begin and prod(one[start:end]) == prod(other[begin:stop]):
            yield range(start, end), range(begin, stop)
            start, begin = end, stop


_RULES: Mapping[str, Callable[[Site], None]] = {
    "input": _free, "iota": _free, "rank": _free, "random": _free, "opaque": _fixed, "constant": _constant,
    "transpose": _transpose, "broadcast": _broadcast, "slice": _slice, "update_slice": _update_slice,
    "concat": _concat, "pad": _pad, "einsum": _einsum, "take": _take, "take_along": _take_along,
    "attention": _attention, "cross_entropy": _cross_entropy, "one_hot": _one_hot, "reshape": _reshape,
}  # fmt: skip
