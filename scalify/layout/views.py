"""Views: in which way the values that ranks hold make up a value of the baseline.

``View(window, index, scale, partial)`` relates a candidate's tensor ``c`` (dimension 0 is the rank) to a
baseline's tensor ``b``: for every element ``i`` of the window,

    sum of c[window.start + i] over the ranks of ``partial``  ==  scale * b[index(i)]

(or the maximum, minimum or product, as ``partial`` says). A replicated value reads ``b`` without using the
rank; a shard uses digits of the rank; a pending sum has ``partial`` digits, on which ``index`` does not
depend, and speaks of all ranks: its window is whole along the rank. Any other window smaller than the tensor
states something about that part only.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from scalify.layout.digits import Expr, Term, aligned, bounds, digit
from scalify.layout.maps import IndexMap, Shape, along, identity, then

RankDigits = tuple[tuple[int, int], ...]
"""Digits of the rank's number, (stride, size), in increasing stride."""

ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Partial:
    """What is still to be combined over which digits of the rank."""

    kind: str  # sum | max | min | prod
    digits: RankDigits

    @property
    def ranks(self) -> int:
        """How many ranks take part in one combination."""
        return prod(size for _, size in self.digits)


@dataclass(frozen=True, slots=True)
class View:
    """See the module. ``window`` is (start, size) per dimension of ``shape``; ``index`` starts there."""

    shape: Shape
    window: tuple[tuple[int, int], ...]
    index: IndexMap
    scale: Fraction = ONE
    partial: Partial | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every element of the tensor is spoken of."""
        return all(size == full for (_, size), full in zip(self.window, self.shape, strict=True))

    @property
    def is_plain(self) -> bool:
        """Whether it says: each element is one of the baseline's, as it stands."""
        return self.is_whole and self.scale == 1 and self.partial is None


def whole(index: IndexMap, scale: Fraction = ONE, partial: Partial | None = None) -> View:
    """A view of a whole tensor."""
    return View(index.domain, tuple((0, size) for size in index.domain), index, scale, partial)


def same(shape: Shape) -> View:
    """A tensor seen as itself."""
    return whole(identity(shape))


def uses_rank_digits(expr: Expr, digits: RankDigits) -> bool:
    """Whether an expression may depend on any of these digits of the rank (dimension 0).

    Digits of unlike radices (of six ranks: the third, and whether a rank is odd) are not independent.
    """
    return any(
        term.dim == 0 and stride % (term.stride * term.size) and term.stride % (stride * size)
        for term in expr.terms
        for stride, size in digits
    )


def independent_of(index: IndexMap, digits: RankDigits) -> bool:
    """Whether no coordinate depends on any of these digits of the rank."""
    return not any(uses_rank_digits(expr, digits) for expr in index.coordinates)


def through(view: View, access: IndexMap) -> View | None:
    """What a reader sees who reads the viewed tensor through ``access``."""
    if view.partial is not None and not passes(access, view.partial.digits):
        return None
    window = _preimage(access, view)
    if window is None or (view.partial is not None and window[0] != (0, access.domain[0])):
        return None
    inner = within(access, window)
    moved = tuple(
        Expr(expr.offset - start, expr.terms)
        for expr, (start, _) in zip(inner.coordinates, view.window, strict=True)
    )
    index = then(IndexMap(inner.domain, view.index.domain, moved), view.index)
    return None if index is None else View(access.domain, window, index, view.scale, view.partial)


def within(access: IndexMap, window: tuple[tuple[int, int], ...]) -> IndexMap:
    """A map restricted to a window of its domain, whose indices start at 0 again."""
    sizes = tuple(size for _, size in window)
    if sizes == access.domain:
        return access
    embed = tuple(along(dim, size, offset=start) for dim, (start, size) in enumerate(window))
    restricted = then(IndexMap(sizes, access.domain, embed), access)
    if restricted is None:
        raise ValueError(f"{access} cannot be restricted to {window}")
    return restricted


def passes(access: IndexMap, digits: RankDigits) -> bool:
    """Whether a reader's rank reads from its own rank as far as ``digits`` go, and the same place on all."""
    rank = access.coordinates[0]
    for stride, size in digits:
        if digit(rank, stride, size) != Expr(0, (Term(0, stride, size, 1),)):
            return False
    rest = aligned(rank.offset, [*rank.terms, *(Term(0, stride, size, -stride) for stride, size in digits)])
    if rest is None or uses_rank_digits(rest, digits):
        return False
    return not any(uses_rank_digits(expr, digits) for expr in access.coordinates[1:])


def _preimage(access: IndexMap, view: View) -> tuple[tuple[int, int], ...] | None:
    """The window of the reader from which only the view's window is read, where it is a box."""
    window = [(0, size) for size in access.domain]
    for expr, (start, size) in zip(access.coordinates, view.window, strict=True):
        low, high = bounds(expr)
        if start <= low and high < start + size:
            continue
        if len(expr.terms) != 1:
            return None
        dim, stride, extent, factor = expr.terms[0]
        if stride != 1 or factor != 1 or extent != access.domain[dim]:
            return None
        first = max(window[dim][0], start - expr.offset, 0)
        last = min(window[dim][0] + window[dim][1], start + size - expr.offset, extent)
        if last <= first:
            return None
        window[dim] = (first, last - first)
    return _splittable(access, tuple(window))


def _splittable(access: IndexMap, window: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...] | None:
    sizes = tuple(size for _, size in window)
    if sizes == access.domain:
        return window
    embed = tuple(along(dim, size, offset=start) for dim, (start, size) in enumerate(window))
    return window if then(IndexMap(sizes, access.domain, embed), access) is not None else None


def narrowed(view: View, window: tuple[tuple[int, int], ...]) -> View | None:
    """The same statement about a window inside the view's own."""
    if window == view.window:
        return view
    if view.partial is not None and window[0] != view.window[0]:
        return None
    sizes = tuple(size for _, size in window)
    embed = tuple(
        along(dim, size, offset=start - outer)
        for dim, ((start, size), (outer, _)) in enumerate(zip(window, view.window, strict=True))
    )
    index = then(IndexMap(sizes, view.index.domain, embed), view.index)
    return None if index is None else View(view.shape, window, index, view.scale, view.partial)


def common_window(views: list[View]) -> tuple[tuple[int, int], ...] | None:
    """The window that all views speak of; None where it is empty."""
    window = views[0].window
    for view in views[1:]:
        if view.window == window:
            continue
        starts = [max(a, b) for (a, _), (b, _) in zip(window, view.window, strict=True)]
        ends = [min(a + m, b + n) for (a, m), (b, n) in zip(window, view.window, strict=True)]
        if any(end <= start for start, end in zip(starts, ends, strict=True)):
            return None
        window = tuple((start, end - start) for start, end in zip(starts, ends, strict=True))
    return window
