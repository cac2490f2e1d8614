"""What the lowering of one op has at hand: the terms, the ranks, and ways to read through a map.

Whatever is not expressible becomes a term without a meaning (``Lowering.unknown``), which is equal only to
itself on the same operands. So nothing is ever guessed: it only stays unproved.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite, isinf

from scalify.ir.graph import Attr, Node, NodeId, TensorType
from scalify.ir.mesh import RankInt
from scalify.layout.digits import Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, broadcast
from scalify.normalize.terms import Access, Terms, composed


@dataclass
class Lowering:
    """``ranks`` is the extent of dimension 0 of everything that depends on the rank."""

    terms: Terms
    ranks: int
    types: Mapping[NodeId, TensorType]
    unknown_nodes: list[Node] = field(default_factory=list)

    def domain(self, shape: Sequence[int]) -> Shape:
        """The shape of a value on all ranks."""
        return (self.ranks, *shape)

    def affine(self, value: int | RankInt) -> Expr:
        """An attribute as an expression over the rank, which is dimension 0."""
        if isinstance(value, int):
            return Expr(value, ())
        return summed(value.base, [Term(0, stride, size, factor) for stride, size, factor in value.terms])

    def number(self, value: float, domain: Shape) -> Access:
        """A constant, everywhere on ``domain``."""
        if isfinite(value):
            return self.terms.number(domain, Fraction(value))
        return self.terms.special(domain, ("inf" if value > 0 else "-inf") if isinf(value) else "nan")

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
        """A term of which nothing is known but its attributes and operands."""
        self.unknown_nodes.append(node)
        return self.block(f"{node.op}({canonical(node.attrs)})", node.type.shape, operands)

    def block(self, name: str, shape: Sequence[int], operands: Sequence[Access], batch: int = 0) -> Access:
        """A pure function of whole blocks of its operands, apart for every index of the first ``batch``
        dimensions, which ``shape`` and all operands share. Two are equal only if equal on equal blocks."""
        made = len(shape) - batch
        blocks = [access.index.domain[1 + batch :] for access in operands]
        domain = (self.ranks, *shape, *(size for block in blocks for size in block))
        read: list[Access] = []
        first = 1 + len(shape)
        for access, block in zip(operands, blocks, strict=True):
            dims = (*range(1 + batch), *range(first, first + len(block)))
            first += len(block)
            index = broadcast(access.index.domain, domain, dims)
            read.append(Access(composed(index, access.index), access.term))
        reduced = sum(len(block) for block in blocks)
        return self.terms.fold(f"block:{made}:{name}:{shape[batch:]}", read, reduced, made)


def canonical(attrs: Mapping[str, Attr]) -> str:
    """Attributes as text: equal text, equal attributes."""
    return ", ".join(f"{name}={attrs[name]!r}" for name in sorted(attrs))


Lower = Callable[[Lowering, Node, Sequence[Access]], Access]
"""Lowers one node, given its operands already lowered (read over the operands' shapes on all ranks)."""
