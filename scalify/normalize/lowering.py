"""What the lowering of one op has at hand: the terms, the ranks, and ways to read through a map.

Whatever is not expressible becomes a term without a meaning (``Lowering.unknown``), which is equal only to
itself on the same operands. So nothing is ever guessed: it only stays unproved.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from scalify.ir.graph import Attr, Node, NodeId, TensorType
from scalify.ir.mesh import RankInt
from scalify.ir.ops import OPS
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.digits import Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, broadcast
from scalify.normalize.numbers import LOWEST, LOWEST_ASSUMED, real, root
from scalify.normalize.terms import Access, Terms, composed


@dataclass
class Lowering:
    """``ranks`` is the extent of dimension 0 of everything that depends on the rank.

    ``written`` holds what was replaced of a value, from where on and by what, where that differs by rank;
    ``listed`` the whole numbers that constants of one dimension hold.
    """

    terms: Terms
    ranks: int
    types: Mapping[NodeId, TensorType]
    unknown_nodes: list[Node] = field(default_factory=list)
    assumed: set[str] = field(default_factory=set)
    written: dict[Access, tuple[tuple[int | RankInt, ...], Access]] = field(
        default_factory=dict[Access, tuple[tuple[int | RankInt, ...], Access]]
    )

    listed: dict[Access, tuple[int, ...]] = field(default_factory=dict[Access, tuple[int, ...]])

    def domain(self, shape: Sequence[int]) -> Shape:
        """The shape of a value on all ranks."""
        return (self.ranks, *shape)

    def affine(self, value: int | RankInt) -> Expr:
        """An attribute as an expression over the rank, which is dimension 0."""
        if isinstance(value, int):
            return Expr(value, ())
        return summed(value.base, [self.rank_digit(*term) for term in value.terms])

    def rank_digit(self, stride: int, size: int, factor: int = 1) -> Term:
        """A multiple of a digit of the rank's number, no longer than the ranks there are."""
        return Term(0, stride, max(1, min(size, -(-self.ranks // stride))), factor)

    def number(self, value: float, domain: Shape) -> Access:
        """A constant, everywhere on ``domain``."""
        found = root(value)
        if found is not None:
            degree, fraction = found
            inner = self.point("sqrt", self.fraction(fraction, domain))
            return self.point("sqrt", inner) if degree == 4 else inner
        number = real(value)
        if value in LOWEST:
            self.assumed.add(LOWEST_ASSUMED)
        if isinstance(number, str):
            return self.terms.special(domain, number)
        return self.terms.number(domain, number)

    def fraction(self, value: Fraction, domain: Shape) -> Access:
        """An exact constant, everywhere on ``domain``."""
        return self.terms.number(domain, value)

    def spread(self, access: Access, domain: Shape) -> Access:
        """An operand broadcast to ``domain``, right-aligned as in NumPy; dimension 0 stays the rank."""
        shape = access.index.domain
        if shape == domain:
            return access
        lead = len(domain) - len(shape)
        dims = (0, *(lead + dim for dim in range(1, len(shape))))
        spread = self.terms.read(broadcast(shape, domain, dims), access)
        if spread is None:
            raise AssertionError("a broadcast always composes")
        return spread

    def repeated(self, access: Access, axis: int, count: int) -> Access:
        """An operand of size 1 along ``axis``, so many times."""
        shape = access.index.domain
        return self.spread(access, (*shape[:axis], count, *shape[axis + 1 :]))

    def common(self, *operands: Access) -> Shape:
        """The domain of operands broadcast together, as in NumPy."""
        rank = max(len(access.index.domain) for access in operands)
        shapes = [(1,) * (rank - len(a.index.domain)) + a.index.domain[1:] for a in operands]
        return (self.ranks, *(max(sizes, key=lambda n: (n != 1, n)) for sizes in zip(*shapes, strict=True)))

    def point(self, op: str, *operands: Access) -> Access:
        """A point-wise operation with NumPy broadcasting."""
        domain = self.common(*operands)
        return self.terms.point(op, [self.spread(access, domain) for access in operands])

    def kept(self, index: IndexMap | None, access: Access, node: Node) -> Access:
        """An operand read through ``index``; without a meaning where that is not expressible."""
        moved = self.terms.read(index, access) if index is not None else None
        return self.unknown(node, (access,)) if moved is None else moved

    def unknown(self, node: Node, operands: Sequence[Access]) -> Access:
        """A term of which nothing is known but its attributes and operands.

        What communicates depends on all ranks' operands and on the own rank; what has attributes that differ
        between ranks, or no operands at all, may depend on the own rank as well.
        """
        self.unknown_nodes.append(node)
        name = named(node, node.attrs)
        if node.op == "opaque":
            dtypes = [self.types[operand].dtype for operand in node.operands]
            name = f"{name} of {', '.join(dtypes)} -> {node.type.dtype}"
        if OPS[node.op].across is not None or _communicates(node):
            return self._blocks(name, node.type.shape, [*operands, self.own_rank()], 0, len(operands))
        if not operands or any(map(_differs, node.attrs.values())):
            operands = [*operands, self.own_rank()]
        return self.block(name, node.type.shape, operands)

    def own_rank(self) -> Access:
        """The number of the rank."""
        return self.terms.index(self.domain(()), summed(0, [self.rank_digit(1, self.ranks)]))

    def block(self, name: str, shape: Sequence[int], operands: Sequence[Access], batch: int = 0) -> Access:
        """A pure function of whole blocks of its operands, apart for every index of the first ``batch``
        dimensions, which ``shape`` and all operands share. Two are equal only if equal on equal blocks."""
        return self._blocks(name, shape, operands, batch, 0)

    def _blocks(
        self, name: str, shape: Sequence[int], operands: Sequence[Access], batch: int, across: int
    ) -> Access:
        """The first ``across`` operands are read on all ranks: the rank is a dimension of their blocks."""
        made = len(shape) - batch
        kept = [0 if position < across else 1 + batch for position in range(len(operands))]
        blocks = [access.index.domain[lead:] for access, lead in zip(operands, kept, strict=True)]
        domain = (self.ranks, *shape, *(size for block in blocks for size in block))
        read: list[Access] = []
        first = 1 + len(shape)
        for access, block, lead in zip(operands, blocks, kept, strict=True):
            if access.index.domain[:lead] != domain[:lead]:
                raise ValueError(f"{name}: {access.index.domain} does not start with {domain[:lead]}")
            dims = (*range(lead), *range(first, first + len(block)))
            first += len(block)
            index = broadcast(access.index.domain, domain, dims)
            read.append(Access(composed(index, access.index), access.term))
        reduced = sum(len(block) for block in blocks)
        op = f"block:{made}:{name}:{tuple(shape[batch:])}:{tuple(blocks)}"
        return self.terms.fold(op, read, reduced, made)


COMMUNICATION = re.compile(
    "c10d|symm_mem|collective|all[_-]?(reduce|gather|to[_-]?all)|reduce[_-]?scatter|(^|[._:])i?(send|recv)([._]|$)"
)
"""What the target of an opaque node is called if ranks may exchange values in it."""


def _communicates(node: Node) -> bool:
    """Whether an opaque node may depend on other ranks: by its name, or because its loader says so."""
    config = str(node.attrs.get("config", ""))
    target = str(node.attrs.get("target", "")).lower()
    return node.op == "opaque" and (
        config.startswith("rank-dependent") or COMMUNICATION.search(target) is not None
    )


def _differs(value: Attr) -> bool:
    return isinstance(value, RankInt) or (isinstance(value, tuple) and any(map(_differs, value)))


def named(node: Node, settings: Mapping[str, Attr]) -> str:
    """What an operation on blocks is called. What it means may depend on the kind of numbers: a sum of truth
    values is whether any holds, a mean of integers is whole."""
    kind = KIND_OF[node.type.dtype]
    name = f"{node.op}({canonical(settings)})"
    return f"{name} of {kind}" if kind in ("int", "bool") and node.op != "opaque" else name


def canonical(attrs: Mapping[str, Attr]) -> str:
    """Attributes as text: equal text, equal attributes."""
    return ", ".join(f"{name}={attrs[name]!r}" for name in sorted(attrs))


Lower = Callable[[Lowering, Node, Sequence[Access]], Access]
"""Lowers one node, given its operands already lowered (read over the operands' shapes on all ranks)."""
