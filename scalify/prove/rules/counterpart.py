"""A candidate's operation against the baseline's operation of the same kind.

Both apply ``op`` to operands that are read through maps. If every operand of the candidate is a view of the
corresponding operand of the baseline, and one map of the whole index space explains all of them, the result
is a view of the baseline's result through that same map.

Over the reals: sums may be split and reordered. A pending sum passes through linear operations only, a scale
through those that are homogeneous in it.
"""

import itertools
from ast import literal_eval
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from scalify.layout.digits import Expr, Term
from scalify.layout.maps import IndexMap, Shape, along, solve
from scalify.layout.ranks import joined, together
from scalify.layout.views import (
    ONE,
    Partial,
    RankDigits,
    View,
    common_window,
    independent_of,
    narrowed,
    passes,
    through,
    uses_rank_digits,
)

FOLDS = frozenset({"sum", "max", "min", "prod"})
COMPARISONS = frozenset({"lt", "le", "eq", "ne"})


class Reading(NamedTuple):
    """An operand: the map through which it is read, and the view that is known of it."""

    access: IndexMap
    view: View


def counterpart(
    op: str, readings: Sequence[Reading], reduced: int, given: Sequence[IndexMap], given_reduced: int
) -> View | None:
    """The view of the baseline's result that the candidate's result is, if it follows.

    ``given`` are the maps through which the baseline's operation reads its operands; ``reduced`` and
    ``given_reduced`` count the trailing dimensions that the two operations fold.
    """
    view = joint(op, readings, given)
    return None if view is None else concluded(op, view, reduced, given_reduced)


def concluded(op: str, view: View, reduced: int, given_reduced: int) -> View | None:
    """The view of the result, from that of the whole index space."""
    if op.startswith("over_ranks:"):
        return _combination(op, view)
    if op.startswith("block:"):
        return _block(view, int(op.split(":")[1]), reduced, given_reduced)
    return folded(op, view, reduced, given_reduced) if reduced or given_reduced else view


def joint(op: str, readings: Sequence[Reading], given: Sequence[IndexMap]) -> View | None:
    """The view of the baseline's whole index space that the candidate's is, before anything is folded."""
    seen = [through(reading.view, reading.access) for reading in readings]
    views = [view for view in seen if view is not None]
    if len(views) < len(seen):
        return None
    window = common_window(views)
    if window is None:
        return None
    narrow = [narrowed(view, window) for view in views]
    views = [view for view in narrow if view is not None]
    if len(views) < len(narrow):
        return None
    passed = _scale_and_partial(op, views)
    if passed is None:
        return None
    wanted, given = [view.index for view in views], list(given)
    if op.startswith("block:"):
        # No operand reads the places that a block makes: they correspond one to one, or nothing follows.
        inner = _block_dimensions(op)
        wanted.append(_last(wanted[0].domain, inner))
        given.append(_last(given[0].domain, inner))
        if wanted[-1].codomain != given[-1].codomain:
            return None
    index = solve(wanted, given)
    return None if index is None else View(views[0].shape, window, index, *passed)


def _block_dimensions(op: str) -> int:
    """How many dimensions a block has in all: those it makes, and those of its operands."""
    _, made, blocks = op.rsplit(":", 2)
    return len(literal_eval(made)) + sum(map(len, literal_eval(blocks)))


def _last(domain: Shape, count: int) -> IndexMap:
    """The index along the last ``count`` dimensions."""
    outer = len(domain) - count
    sizes = domain[outer:]
    return IndexMap(domain, sizes, tuple(along(outer + dim, size) for dim, size in enumerate(sizes)))


def _scale_and_partial(op: str, views: Sequence[View]) -> tuple[Fraction, Partial | None] | None:
    """What becomes of scales and pending combinations of the operands; None where they do not pass."""
    pending = {view.partial for view in views} - {None}
    if len(pending) > 1:
        return None
    partial = next(iter(pending), None)
    if op in ("add", "where"):
        return _sum_like(op, views, partial)
    if op == "mul":
        return _product(views, partial)
    if partial is not None and (partial.kind != op or not _settles(views, partial)):
        return None
    scales = {view.scale for view in views}
    scale = scales.pop()
    if scales:
        return None
    if op == "sum":
        return scale, partial
    if op == "reciprocal" and scale:
        return 1 / scale, None
    if op in ("max", "min") and scale > 0:
        return scale, partial
    if op in COMPARISONS and scale > 0:
        return ONE, None
    return (ONE, partial) if scale == 1 else None


def _settles(views: Sequence[View], partial: Partial) -> bool:
    """Whether a fold, or an extreme of two, may be taken before the pending combination of the same kind.

    An operand that is not pending takes part on every rank, so it must be the same on all of them.
    """
    return partial.kind in FOLDS and all(
        view.partial is not None or independent_of(view.index, partial.digits) for view in views
    )


def _sum_like(
    op: str, views: Sequence[View], partial: Partial | None
) -> tuple[Fraction, Partial | None] | None:
    """Sums, and choices by a condition that is the same on all ranks of a pending sum."""
    terms = views
    if op == "where":
        condition, *terms = views
        if condition.scale != 1 or condition.partial is not None:
            return None
        if partial is not None and not independent_of(condition.index, partial.digits):
            return None
    if partial is not None and partial.kind != "sum":
        return None
    scales: set[Fraction] = set()
    for view in terms:
        if _is_zero(view):
            continue
        scale = view.scale
        if partial is not None and view.partial is None:
            if not independent_of(view.index, partial.digits):
                return None
            scale *= partial.ranks
        scales.add(scale)
    if len(scales) > 1:
        return None
    return next(iter(scales), ONE), partial


def _is_zero(view: View) -> bool:
    """Whether the view is of the number 0, which every scale fits."""
    index = view.index
    return len(index.codomain) == 2 and index.codomain[1] >= 2**62 and index.coordinates[1] == Expr(0, ())


def _product(views: Sequence[View], partial: Partial | None) -> tuple[Fraction, Partial | None] | None:
    """Products: scales multiply; only one factor may be pending, the others the same on its ranks."""
    scale = ONE
    for view in views:
        scale *= view.scale
    if partial is None:
        return scale, None
    whole = [view for view in views if view.partial is None]
    if partial.kind != "sum" or len(whole) != len(views) - 1:
        return None
    return (scale, partial) if all(independent_of(v.index, partial.digits) for v in whole) else None


def _combination(op: str, view: View) -> View | None:
    """Combinations over ranks on both sides: each group must stand for one group of the baseline."""
    digits = literal_eval(op.rsplit(":", 1)[1])
    if view.window[0] != (0, view.shape[0]) or view.partial is not None:
        return None
    return view if passes(view.index, digits) else None


def _block(view: View, made: int, reduced: int, given_reduced: int) -> View | None:
    """Whole blocks: the inner dimensions of both operations must correspond one to one, untouched."""
    inner, given_inner = made + reduced, made + given_reduced
    sizes = view.index.domain
    if inner != given_inner or sizes != tuple(size for _, size in view.window):
        return None
    if view.scale != 1 or view.partial is not None or not view.is_whole:
        return None
    outer, outer_given = len(sizes) - inner, len(view.index.codomain) - inner
    for position in range(inner):
        size = sizes[outer + position]
        own = Expr(0, (Term(outer + position, 1, size, 1),)) if size > 1 else Expr(0, ())
        if view.index.codomain[outer_given + position] != size:
            return None
        if view.index.coordinates[outer_given + position] != own:
            return None
    if any(term.dim >= outer for expr in view.index.coordinates[:outer_given] for term in expr.terms):
        return None
    return _without_last(view, reduced, given_reduced, view.index.coordinates)


def _without_last(view: View, reduced: int, given_reduced: int, coordinates: tuple[Expr, ...]) -> View:
    kept = len(view.shape) - reduced
    given_kept = len(view.index.codomain) - given_reduced
    index = IndexMap(view.index.domain[:kept], view.index.codomain[:given_kept], coordinates[:given_kept])
    return View(view.shape[:kept], view.window[:kept], index, view.scale, view.partial)


def folded(op: str, view: View, reduced: int, given_reduced: int) -> View | None:
    """Fold the last ``reduced`` dimensions of the candidate and ``given_reduced`` of the baseline.

    Kept places must not depend on folded ones. Folded places must run over the baseline's exactly once:
    together with digits of the rank, which then are still pending. What the candidate folds without any
    effect on the place counts as a factor (sum) or not at all (extremes).
    """
    kept = len(view.shape) - reduced
    given_kept = len(view.index.codomain) - given_reduced
    if any(window != (0, full) for window, full in zip(view.window[kept:], view.shape[kept:], strict=True)):
        return None
    outer, inner = view.index.coordinates[:given_kept], view.index.coordinates[given_kept:]
    if any(term.dim >= kept for expr in outer for term in expr.terms):
        return None
    if any(view.shape[term.dim] % (term.stride * term.size) for expr in inner for term in expr.terms):
        return None
    used: list[Term] = []
    for expr, size in zip(inner, view.index.codomain[given_kept:], strict=True):
        if not _covers(expr, size) or any(0 < term.dim < kept for term in expr.terms):
            return None
        used.extend(expr.terms)
    if not _disjoint(used):
        return None
    pending = joined(tuple((term.stride, term.size) for term in used if term.dim == 0))
    if any(uses_rank_digits(expr, pending) for expr in outer):
        return None
    if pending and view.window[0] != (0, view.shape[0]):
        return None
    partial = _merged(op, view.partial, pending)
    if partial is None:
        return None
    repeats = 1
    for dim in range(kept, len(view.shape)):
        inside = 1
        for term in used:
            inside *= term.size if term.dim == dim else 1
        repeats *= view.shape[dim] // inside
    if repeats > 1 and op not in ("sum", "max", "min"):
        return None
    scale = view.scale * (repeats if op == "sum" else 1)
    done = _without_last(view, reduced, given_reduced, view.index.coordinates)
    return View(done.shape, done.window, done.index, scale, partial if partial.digits else None)


def _covers(expr: Expr, size: int) -> bool:
    """Whether the expression takes each value below ``size`` exactly once as its digits run."""
    weight, offset = 1, 0
    for term in sorted(expr.terms, key=lambda t: abs(t.factor)):
        if abs(term.factor) != weight:
            return False
        offset += weight * (term.size - 1) if term.factor < 0 else 0
        weight *= term.size
    return weight == size and expr.offset == offset


def _disjoint(terms: Sequence[Term]) -> bool:
    ordered = sorted(terms)
    return all(
        one.dim != other.dim or other.stride % (one.stride * one.size) == 0
        for one, other in itertools.pairwise(ordered)
    )


def _merged(op: str, partial: Partial | None, pending: RankDigits) -> Partial | None:
    """Pending digits of before and of now; they are of one kind and do not overlap."""
    if partial is None:
        return Partial(op, pending)
    digits = together(partial.digits, pending) if partial.kind == op else None
    return None if digits is None else Partial(op, digits)
