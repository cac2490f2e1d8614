"""Collectives: gathers and exchanges are index maps over ranks; only combinations over ranks are terms."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import cast

from scalify.ir.graph import Node
from scalify.ir.mesh import Groups
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.digits import Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, along, sliced
from scalify.layout.ranks import digits_of, without
from scalify.layout.views import RankDigits, uses_rank_digits
from scalify.normalize.flat import factors, goes_outside
from scalify.normalize.hits import shared_by_hits
from scalify.normalize.lowering import Lower, Lowering
from scalify.normalize.movement import cut
from scalify.normalize.products import multiply, product
from scalify.normalize.sums import add
from scalify.normalize.terms import Access

MOST_PIECES = 16


def _digits(node: Node) -> RankDigits | None:
    return digits_of(cast(Groups, node.attrs["groups"]))


def _own(low: Lowering, digits: RankDigits) -> list[Term]:
    """The rank's own number without ``digits``."""
    rest = without(((1, low.ranks),), digits) if low.ranks > 1 else ()
    if rest is None:
        raise AssertionError(f"digits {digits} are of {low.ranks} ranks")
    return [Term(0, stride, size, stride) for stride, size in rest]


def _position(digits: RankDigits, factor: int) -> list[Term]:
    """``factor`` times a rank's place in its group: lower digits vary faster."""
    terms: list[Term] = []
    for stride, size in digits:
        terms.append(Term(0, stride, size, factor))
        factor *= size
    return terms


def _member(dim: int, digits: RankDigits, inner: int) -> list[Term]:
    """The rank whose place in the group is ``x[dim] // inner``."""
    terms: list[Term] = []
    for stride, size in digits:
        terms.append(Term(dim, inner, size, stride))
        inner *= size
    return terms


def combined(low: Lowering, node: Node, x: Access, digits: RankDigits) -> Access:
    """A combination over ranks; of truth values, a sum is whether any holds. A mean of integers is whole."""
    kind, dtype = cast(str, node.attrs["kind"]), node.type.dtype
    if dtype == "bool":
        return _over_ranks(low, {"sum": "max", "avg": "max", "prod": "min"}.get(kind, kind), x, digits)
    if kind != "avg":
        return _over_ranks(low, kind, x, digits)
    count = prod(size for _, size in digits)
    mean = multiply(low, _over_ranks(low, "sum", x, digits), low.fraction(Fraction(1, count), (low.ranks,)))
    return low.point("trunc", mean) if KIND_OF[dtype] == "int" else mean


def _over_ranks(low: Lowering, kind: str, x: Access, digits: RankDigits) -> Access:
    """Of values that agree on these ranks, a multiple, a power or the value itself."""
    count = prod(size for _, size in digits)
    if _agree(x, digits):
        if kind == "sum":
            return multiply(low, x, low.fraction(Fraction(count), (low.ranks,)))
        return x if kind in ("max", "min") or count == 1 else low.point(f"power[{count}]", x)
    shared = shared_by_hits(low, x, digits) if kind == "sum" else None
    if shared is not None:
        rest, always = shared
        return add(low, _over_ranks(low, kind, rest, digits), always)
    parts = factors(low.terms, x) if kind == "sum" else [x]
    outer = [part for part in parts if _agree(part, digits) and goes_outside(low.terms, part)]
    whole = _for_all(low, low.point(f"over_ranks:{kind}:{digits}", x), digits)
    if not outer:
        return whole
    inner = product(low, [part for part in parts if part not in outer], x.index.domain)
    result = _for_all(low, low.point(f"over_ranks:{kind}:{digits}", inner), digits)
    for part in outer:
        result = multiply(low, result, part)
    low.terms.equate(result, whole)
    return result


def _for_all(low: Lowering, x: Access, digits: RankDigits) -> Access:
    """A combination is the same for all its members: read where their digits are 0, it depends on none."""
    rank = summed(0, _own(low, digits))
    index = IndexMap(x.index.domain, x.index.codomain, (rank, *x.index.coordinates[1:]))
    return Access(index, x.term)


def _agree(x: Access, digits: RankDigits) -> bool:
    """Whether ranks that differ in these digits only hold the same."""
    return not any(uses_rank_digits(expr, digits) for expr in x.index.coordinates)


def all_reduce(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Everybody's value combined, for everybody: in which order the members stand does not matter."""
    groups = cast(Groups, node.attrs["groups"])
    digits = digits_of(tuple(tuple(sorted(group)) for group in groups))
    if digits is None:
        return low.unknown(node, operands)
    return combined(low, node, operands[0], digits)


def all_gather(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Pieces of all members, one after the other along a dimension."""
    (x,) = operands
    digits = _digits(node)
    if digits is None:
        return low.unknown(node, operands)
    dim = cast(int, node.attrs["dim"]) + 1
    shape = x.index.domain
    piece = shape[dim]
    domain = low.domain(node.type.shape)
    coordinates = [along(d, size) for d, size in enumerate(domain)]
    coordinates[0] = summed(0, [*_own(low, digits), *_member(dim, digits, piece)])
    coordinates[dim] = Expr(0, (Term(dim, 1, piece, 1),)) if piece > 1 else Expr(0, ())
    return low.kept(IndexMap(domain, shape, tuple(coordinates)), x, node)


def own_piece(low: Lowering, node: Node, x: Access, dim: int, digits: RankDigits) -> Access:
    """A rank's own part along a dimension."""
    shape = x.index.domain
    piece = shape[dim] // prod(size for _, size in digits)
    starts = [summed(0, _position(digits, piece)) if d == dim else Expr(0, ()) for d in range(len(shape))]
    sizes: Shape = tuple(piece if d == dim else size for d, size in enumerate(shape))
    return low.kept(sliced(shape, starts, sizes, (1,) * len(shape)), x, node)


def reduce_scatter(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """The combination, of which every member keeps its part."""
    digits = _digits(node)
    if digits is None:
        return low.unknown(node, operands)
    total = combined(low, node, operands[0], digits)
    return own_piece(low, node, total, cast(int, node.attrs["dim"]) + 1, digits)


def all_to_all(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Member ``i`` gets everybody's ``i``-th part of ``split_dim``, put together along ``concat_dim``."""
    (x,) = operands
    digits = _digits(node)
    if digits is None:
        return low.unknown(node, operands)
    split, concat = cast(int, node.attrs["split_dim"]) + 1, cast(int, node.attrs["concat_dim"]) + 1
    shape = x.index.domain
    count = prod(size for _, size in digits)
    domain = low.domain(node.type.shape)
    part = shape[split] // count
    inner = part if split == concat else shape[concat]
    coordinates = [along(d, size) for d, size in enumerate(domain)]
    coordinates[0] = summed(0, [*_own(low, digits), *_member(concat, digits, inner)])
    coordinates[concat] = summed(0, [Term(concat, 1, inner, 1)])
    coordinates[split] = summed(0, [Term(split, 1, part, 1), *_position(digits, part)])
    return low.kept(IndexMap(domain, shape, tuple(coordinates)), x, node)


def broadcast_from(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """The root's value, for everybody in its group."""
    (x,) = operands
    digits = _digits(node)
    if digits is None:
        return low.unknown(node, operands)
    place = cast(int, node.attrs["root"])
    root = 0
    for stride, size in digits:
        root += stride * (place % size)
        place //= size
    coordinates = [along(d, size) for d, size in enumerate(x.index.domain)]
    coordinates[0] = summed(root, _own(low, digits))
    return low.kept(IndexMap(x.index.domain, x.index.domain, tuple(coordinates)), x, node)


def permute(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Sends from rank to rank: a map, where each rank's source is affine in digits of its own number.

    A ring's is not, since it turns round: what ranks receive is put together along the rank.
    """
    (x,) = operands
    pairs = cast(tuple[tuple[int, int], ...], node.attrs["pairs"])
    source = {target: origin for origin, target in pairs}
    if sorted(source) != list(range(low.ranks)):
        return low.unknown(node, operands)
    sources = [source[target] for target in range(low.ranks)]
    rank = _affine_in_digits(sources)
    if rank is None:
        return _received(low, x, sources) or low.unknown(node, operands)
    coordinates = [along(d, size) for d, size in enumerate(x.index.domain)]
    coordinates[0] = rank
    return low.kept(IndexMap(x.index.domain, x.index.domain, tuple(coordinates)), x, node)


def _received(low: Lowering, x: Access, sources: Sequence[int]) -> Access | None:
    """What each rank has of its source, rank after rank; None where that are many pieces."""
    runs = [0, *(r for r in range(1, len(sources)) if sources[r] != sources[r - 1] + 1), len(sources)]
    if len(runs) > MOST_PIECES:
        return None
    pieces = [cut(low, x, 0, sources[start], sources[start] + stop - start) for start, stop in pairwise(runs)]
    return low.terms.concatenation(0, pieces)


def _affine_in_digits(values: Sequence[int]) -> Expr | None:
    """The expression over the rank that has these values, if digits of prime size can say it."""
    terms: list[Term] = []
    stride, rest = 1, len(values)
    while rest > 1:
        size = next(p for p in range(2, rest + 1) if rest % p == 0)
        factor = values[stride] - values[0]
        if factor:
            terms.append(Term(0, stride, size, factor))
        stride, rest = stride * size, rest // size
    expr = summed(values[0], terms)
    exact = all(
        value == expr.offset + sum(t.factor * (rank // t.stride % t.size) for t in expr.terms)
        for rank, value in enumerate(values)
    )
    return expr if exact else None


COLLECTIVE: Mapping[str, Lower] = {
    "all_reduce": all_reduce,
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "all_to_all": all_to_all,
    "broadcast_from": broadcast_from,
    "permute": permute,
}
