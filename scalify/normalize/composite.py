"""Composites by their definitions: the same for all front ends, so a fused op meets its parts."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import cast

from scalify.ir.graph import Node
from scalify.layout.digits import Expr, Term
from scalify.layout.maps import IndexMap, along, reshaped
from scalify.normalize.choices import equal, where
from scalify.normalize.contraction import contract
from scalify.normalize.exponentials import exp, log
from scalify.normalize.lowering import Lower, Lowering
from scalify.normalize.movement import ints
from scalify.normalize.products import divide, multiply, reciprocal
from scalify.normalize.reduction import over, restored, spread
from scalify.normalize.sums import add, subtract
from scalify.normalize.terms import Access


def exponentials(low: Lowering, x: Access, axes: Sequence[int]) -> Access:
    """``exp(x - max)``, as every implementation computes it."""
    return exp(low, subtract(low, x, spread(low, "max", x, axes)))


def softmax(low: Lowering, x: Access, axes: Sequence[int]) -> Access:
    """Exponentials over their sum."""
    powers = exponentials(low, x, axes)
    return divide(low, powers, spread(low, "sum", powers, axes))


def logsumexp(low: Lowering, x: Access, axes: Sequence[int]) -> Access:
    """The logarithm of the sum of exponentials, folded along ``axes``."""
    total = log(low, over(low, "sum", exponentials(low, x, axes), axes))
    return add(low, total, over(low, "max", x, axes))


def standardised(low: Lowering, x: Access, axes: Sequence[int], eps: float) -> Access:
    """Less the mean, over the deviation."""
    centred = subtract(low, x, spread(low, "mean", x, axes))
    variance = spread(low, "mean", multiply(low, centred, centred), axes)
    return multiply(low, centred, _inverse_root(low, variance, eps))


def _inverse_root(low: Lowering, x: Access, eps: float) -> Access:
    return reciprocal(low, low.point("sqrt", add(low, x, low.number(eps, (low.ranks,)))))


def layer_norm(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Standardised along the last axes, then scaled and moved."""
    x, *rest = operands
    axes = ints(node, "axes")
    result = standardised(low, x, axes, cast(float, node.attrs["eps"]))
    if rest:
        result = multiply(low, result, _placed(low, rest[0], axes, x))
    return add(low, result, _placed(low, rest[1], axes, x)) if len(rest) > 1 else result


def rms_norm(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Over the root of the mean square; the weight lies along the normalised axes."""
    x, *rest = operands
    axes = ints(node, "axes")
    squares = spread(low, "mean", multiply(low, x, x), axes)
    eps = node.attrs["eps"]
    result = multiply(low, x, _inverse_root(low, squares, cast(float, eps)))
    return multiply(low, result, _placed(low, rest[0], axes, x)) if rest else result


def _placed(low: Lowering, weight: Access, axes: Sequence[int], like: Access) -> Access:
    shape = like.index.domain
    dims = [0, *(axis + 1 for axis in axes)]
    index = IndexMap(shape, weight.index.domain, tuple(along(dim, shape[dim]) for dim in dims))
    read = low.terms.read(index, weight)
    if read is None:
        raise AssertionError("naming dimensions always composes")
    return read


def group_norm(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Standardised within groups of channels."""
    x, *rest = operands
    shape = x.index.domain
    groups = cast(int, node.attrs["groups"])
    grouped = (shape[0], shape[1], groups, prod(shape[2:]) // groups)
    split = reshaped(shape, grouped)
    lines = low.terms.read(split, x) if split is not None else None
    if lines is None:
        return low.unknown(node, operands)
    normal = standardised(low, lines, (2,), cast(float, node.attrs["eps"]))
    back = reshaped(grouped, shape)
    result = low.terms.read(back, normal) if back is not None else None
    if result is None:
        return low.unknown(node, operands)
    if rest:
        result = multiply(low, result, _placed(low, rest[0], (1,), x))
    return add(low, result, _placed(low, rest[1], (1,), x)) if len(rest) > 1 else result


def batch_norm(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """With given statistics (inference)."""
    x, mean, variance, *rest = operands
    inverse = _inverse_root(low, variance, cast(float, node.attrs["eps"]))
    result = multiply(low, subtract(low, x, _placed(low, mean, (1,), x)), _placed(low, inverse, (1,), x))
    if rest:
        result = multiply(low, result, _placed(low, rest[0], (1,), x))
    return add(low, result, _placed(low, rest[1], (1,), x)) if len(rest) > 1 else result


def attention(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """softmax(scale * q k^T + mask) v; query head ``h`` reads KV head ``h // (H / Hkv)``."""
    q, k, v, *mask = operands
    *batch, heads, _, _ = q.index.domain[1:]
    letters = "abcdef"[: len(batch)] + "h"
    k, v = _per_head(low, k, heads), _per_head(low, v, heads)
    scores = contract(low, (f"{letters}td", f"{letters}sd"), f"{letters}ts", (q, k))
    scores = multiply(low, scores, low.number(cast(float, node.attrs["scale"]), (low.ranks,)))
    if node.attrs["causal"]:
        scores = _masked(low, scores, _causal(low, scores))
    if mask:
        is_truth = low.types[node.operands[3]].dtype == "bool"
        scores = _masked(low, scores, mask[0]) if is_truth else add(low, scores, mask[0])
    weights = softmax(low, scores, (len(scores.index.domain) - 2,))
    return contract(low, (f"{letters}ts", f"{letters}sd"), f"{letters}td", (weights, v))


def _per_head(low: Lowering, x: Access, heads: int) -> Access:
    """Keys or values repeated so that every query head has its own."""
    shape = x.index.domain
    dim = len(shape) - 3
    group = heads // shape[dim]
    if group == 1:
        return x
    domain = (*shape[:dim], heads, *shape[dim + 1 :])
    coordinates = [along(d, size) for d, size in enumerate(shape)]
    coordinates[dim] = Expr(0, (Term(dim, group, shape[dim], 1),)) if shape[dim] > 1 else Expr(0, ())
    read = low.terms.read(IndexMap(domain, shape, tuple(coordinates)), x)
    if read is None:
        raise AssertionError("repeating heads always composes")
    return read


def _causal(low: Lowering, scores: Access) -> Access:
    domain = scores.index.domain
    row, column = len(domain) - 2, len(domain) - 1
    return low.point(
        "le",
        low.terms.index(domain, along(column, domain[column])),
        low.terms.index(domain, along(row, domain[row])),
    )


def _masked(low: Lowering, scores: Access, mask: Access) -> Access:
    return low.point("where", mask, scores, low.number(float("-inf"), (low.ranks,)))


def cross_entropy(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """log-sum-exp less the target's logit; ignored targets count for nothing."""
    logits, target = operands
    rows, classes = logits.index.domain[1:]
    domain = low.domain((rows, classes))
    column = low.terms.index(domain, along(2, classes))
    low.terms.assume_in_range(target, classes)
    chosen = equal(low, restored(low, target, (1,), domain), column)
    picked = over(low, "sum", multiply(low, chosen, logits), (1,))
    losses = subtract(low, logsumexp(low, logits, (1,)), picked)
    ignored = low.fraction(Fraction(cast(int, node.attrs["ignore_index"])), (low.ranks, 1))
    counted = low.point("ne", target, ignored)
    losses = where(low, counted, losses, low.number(0.0, (low.ranks,)))
    if node.attrs["reduction"] == "none":
        return losses
    total = over(low, "sum", losses, (0,))
    return total if node.attrs["reduction"] == "sum" else divide(low, total, over(low, "sum", counted, (0,)))


def _softmax(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    return softmax(low, operands[0], (cast(int, node.attrs["axis"]),))


def _log_softmax(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    (x,) = operands
    axes = (cast(int, node.attrs["axis"]),)
    return subtract(low, x, restored(low, logsumexp(low, x, axes), axes, x.index.domain))


def _logsumexp(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    (x,) = operands
    axes = ints(node, "axes")
    folded = logsumexp(low, x, axes)
    return restored(low, folded, axes, low.domain(node.type.shape)) if node.attrs["keepdims"] else folded


COMPOSITE: Mapping[str, Lower] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "group_norm": group_norm,
    "batch_norm": batch_norm,
    "attention": attention,
    "cross_entropy": cross_entropy,
}
