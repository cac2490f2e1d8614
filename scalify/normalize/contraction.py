"""Contractions are sums of products: one space of all letters, read by each operand through its own map."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import cast

from scalify.ir.graph import Node
from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.maps import IndexMap, along
from scalify.normalize.choices import equal
from scalify.normalize.lowering import Lower, Lowering
from scalify.normalize.movement import ints, padded
from scalify.normalize.products import multiply
from scalify.normalize.reduction import fold
from scalify.normalize.terms import Access


def einsum(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Products over all letters, then a sum over those that are not in the result."""
    if node.type.dtype == "bool":
        return low.unknown(node, operands)
    left, _, result = cast(str, node.attrs["spec"]).partition("->")
    return contract(low, left.split(","), result, operands)


def contract(low: Lowering, subscripts: Sequence[str], result: str, operands: Sequence[Access]) -> Access:
    """An einsum given by its subscripts."""
    sizes: dict[str, int] = {}
    for letters, access in zip(subscripts, operands, strict=True):
        for letter, size in zip(letters, access.index.domain[1:], strict=True):
            sizes[letter] = size if size != 1 else sizes.get(letter, 1)
    summed_letters = [letter for letter in sizes if letter not in result]
    order = [*result, *summed_letters]
    domain = low.domain([sizes[letter] for letter in order])
    product: Access | None = None
    for letters, access in zip(subscripts, operands, strict=True):
        coordinates = (along(0, low.ranks), *(_letter(order, sizes, letter, size) for letter, size in
                       zip(letters, access.index.domain[1:], strict=True)))  # fmt: skip
        spread = low.terms.read(IndexMap(domain, access.index.domain, coordinates), access)
        if spread is None:
            raise AssertionError("naming dimensions always composes")
        product = spread if product is None else multiply(low, product, spread)
    if product is None:
        raise AssertionError("an einsum has operands")
    return fold(low, "sum", product, len(summed_letters))


def _letter(order: Sequence[str], sizes: Mapping[str, int], letter: str, size: int) -> Expr:
    return along(order.index(letter) + 1, sizes[letter]) if size > 1 else ZERO


def conv(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A convolution: a sum over channels and taps of products of shifted windows."""
    if node.type.dtype == "bool":
        return low.unknown(node, operands)
    x, weight = operands
    strides, dilation = ints(node, "strides"), ints(node, "dilation")
    groups = cast(int, node.attrs["groups"])
    padding = cast(tuple[tuple[int, int], ...], node.attrs["padding"])
    zero = low.fraction(Fraction(0), (low.ranks,))
    x = padded(low, x, zero, ((0, 0), (0, 0), *padding))
    batch, channels, *taps = (x.index.domain[1], *weight.index.domain[2:])
    outputs, spatial = node.type.shape[1], node.type.shape[2:]
    domain = low.domain((batch, outputs, *spatial, channels, *taps))
    channel_dim = 3 + len(spatial)
    channel = summed(0, [*along(channel_dim, channels).terms, Term(2, outputs // groups, groups, channels)])
    windows = [
        summed(0, [*along(3 + i, n, strides[i]).terms, *along(channel_dim + 1 + i, k, dilation[i]).terms])
        for i, (n, k) in enumerate(zip(spatial, taps, strict=True))
    ]
    reads = (along(0, low.ranks), along(1, batch), channel, *windows)
    shifted = low.terms.read(IndexMap(domain, x.index.domain, reads), x)
    kernel = (along(0, low.ranks), along(2, outputs), along(channel_dim, channels),
              *(along(channel_dim + 1 + i, k) for i, k in enumerate(taps)))  # fmt: skip
    spread = low.terms.read(IndexMap(domain, weight.index.domain, kernel), weight)
    if shifted is None or spread is None:
        return low.unknown(node, operands)
    return fold(low, "sum", multiply(low, shifted, spread), 1 + len(taps))


def one_hot(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """1 where the class is the index, else 0."""
    (indices,) = operands
    domain = low.domain(node.type.shape)
    last = len(domain) - 1
    row = low.terms.index(domain, along(last, domain[last]))
    shape = indices.index.domain
    spread = low.terms.read(
        IndexMap(domain, shape, tuple(along(dim, size) for dim, size in enumerate(shape))), indices
    )
    return low.unknown(node, operands) if spread is None else equal(low, spread, row)


CONTRACTION: Mapping[str, Lower] = {"einsum": einsum, "conv": conv, "one_hot": one_hot}
