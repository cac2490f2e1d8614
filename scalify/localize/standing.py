"""How a value of the candidate stands to a value of the baseline: what is known of the two from a proof.

In: a region. Out: for any two nodes whether the candidate's is *clean* (every
dimension is the baseline's own, in order, whole or in blocks by rank), related in another way, or unknown;
with the scale, and with what is still to be combined over ranks.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from scalify.ir.graph import NodeId
from scalify.ir.mesh import Mesh
from scalify.layout.maps import IndexMap, Shape, along, solve, then
from scalify.layout.views import ONE, Partial, View, same, through
from scalify.normalize.terms import Access, TermId, number_of
from scalify.prove.classes import Classes
from scalify.prove.engine import Budget, saturate
from scalify.prove.region import Region, RegionProof, RegionTerms, terms_of
from scalify.relate.layouts import Layout, index_of, layouts, rank_by_rank, text_of

PART_BY_PART = ", part by part"

Window = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``layout`` is set for clean values only, ``by_part`` where such parts follow each other; ``index`` maps
    to the baseline's value where one map does it.

    ``is_related`` says that every element is known to be one of the baseline's value, up to ``scale`` and to
    what is ``partial``.
    """

    counterpart: NodeId | None
    is_related: bool = False
    layout: str | None = None
    splits: Layout = ()
    by_part: bool = False
    index: IndexMap | None = None
    scale: Fraction = ONE
    partial: Partial | None = None

    @property
    def is_clean(self) -> bool:
        """Whether it is the baseline's value, laid out as one would expect; sums may be pending."""
        return self.layout is not None and self.scale == 1


class Standings:
    """The standings in one region, each worked out once.

    An engine runs again, on all that either side computes: a proof looks only at what its goals are made of,
    and leaves out what cancels. ``windows``: ranks stand side by side, and hold windows of what they share.
    """

    def __init__(
        self, region: Region, proof: RegionProof, mesh: Mesh, budget: Budget, *, windows: bool = False
    ) -> None:
        self.mesh = mesh
        self.windows = windows
        self.baseline_ranks = region.baseline_ranks
        lowered = _terms(region, proof)
        self.terms = lowered.terms
        self.own, self.given = lowered.candidate.accesses, lowered.baseline.accesses
        self._views: dict[tuple[TermId, TermId], list[View]] = defaultdict(list)
        saturation = saturate(
            lowered.terms, [*lowered.terms.numbers()], lowered.baseline_numbers, (), _nothing_wanted, budget
        )
        names = saturation.names.views
        # The engine speaks of classes: of equal terms by one of them.
        self._classes = Classes(lowered.terms, [*lowered.terms.numbers()])
        self._scales: dict[TermId, set[Fraction]] = defaultdict(set)
        for derivation in saturation.derivations:
            view = names[derivation.view]
            own = self._classes.of(derivation.candidate)
            self._views[own, self._classes.of(derivation.baseline)].append(view)
            self._scales[own].add(view.scale)
        self.baseline_terms = lowered.baseline_numbers
        self._known: dict[tuple[NodeId, NodeId], Standing] = {}
        self._layouts: dict[tuple[Shape, Shape], tuple[Layout, ...]] = {}

    def of(self, node: NodeId, counterpart: NodeId | None) -> Standing:
        """The best that is known of a candidate's node against a baseline's."""
        if counterpart is None or node not in self.own or counterpart not in self.given:
            return Standing(counterpart=counterpart)
        key = node, counterpart
        if key not in self._known:
            self._known[key] = self._best(node, counterpart)
        return self._known[key]

    def has_view(self, node: NodeId) -> bool:
        """Whether the node is known to be anything of the baseline's."""
        return node in self.own and bool(self.scales(node))

    def scales(self, node: NodeId) -> frozenset[Fraction]:
        """The factors by which the node is known to be anything of the baseline's."""
        term = self.own[node].term
        own = {ONE} if term in self.baseline_terms else set[Fraction]()
        return frozenset(own | self._scales[self._classes.of(term)])

    def _best(self, node: NodeId, counterpart: NodeId) -> Standing:
        found: list[Standing] = []
        for own_factor, own in self._multiples(self.own[node]):
            for factor, given in self._multiples(self.given[counterpart]):
                for (scale, partial), seen in self._seen(own, given.term).items():
                    scale *= own_factor / factor
                    found.append(self._standing(counterpart, seen, given.index, scale, partial))
        return max(found, key=_goodness, default=Standing(counterpart=counterpart))

    def _seen(self, own: Access, given: TermId) -> Mapping[tuple[Fraction, Partial | None], list[View]]:
        """What the views of a term by a baseline's say of one that is read of it, by scale and pending."""
        classes = self._classes.of(own.term), self._classes.of(given)
        views = [*self._views.get(classes, ())]
        if classes[0] == classes[1]:
            views.append(same(self.terms[own.term].space))
        groups: dict[tuple[Fraction, Partial | None], list[View]] = defaultdict(list)
        for view in views:
            seen = through(view, own.index)
            if seen is not None:
                groups[seen.scale, seen.partial].append(seen)
        return groups

    def _multiples(self, access: Access) -> list[tuple[Fraction, Access]]:
        """A value as itself, and as a number times another value, as far as that goes."""
        found = [(ONE, access)]
        while self.terms[access.term].op == "mul":
            factor, inner = self._factor(access)
            if inner is None:
                break
            found.append((found[-1][0] * factor, inner))
            access = inner
        return found

    def _factor(self, access: Access) -> tuple[Fraction, Access | None]:
        one, other = self.terms[access.term].operands
        for factor, rest in ((one, other), (other, one)):
            value = number_of(self.terms, factor)
            index = then(access.index, rest.index) if value else None
            if value and index is not None:
                return value, Access(index, rest.term)
        return ONE, None

    def _standing(
        self,
        counterpart: NodeId,
        seen: Sequence[View],
        given: IndexMap,
        scale: Fraction,
        partial: Partial | None,
    ) -> Standing:
        clean = self._clean(seen, given)
        whole = next((view for view in seen if view.is_whole), None)
        return Standing(
            counterpart=counterpart,
            is_related=covers([view.window for view in seen], seen[0].shape),
            layout=clean[1] if clean else None,
            splits=clean[0] if clean else (),
            by_part=bool(clean and clean[1].endswith(PART_BY_PART)),
            index=None if whole is None else solve([whole.index], [given]),
            scale=scale,
            partial=partial,
        )

    def _clean(self, seen: Sequence[View], given: IndexMap) -> tuple[Layout, str] | None:
        shape, whole = seen[0].shape, given.domain
        if self.baseline_ranks > 1:
            same_on_each = shape == whole and then(rank_by_rank(whole[1:], whole[0]), given)
            return ((), "the same on each rank") if any(v.index == same_on_each for v in seen) else None
        for layout in self._choices(whole[1:], shape[1:]):
            parts = [
                view.window
                for view in seen
                if view.window[0] == (0, shape[0])
                and then(self._part(layout, view.window, whole[1:]), given) == view.index
            ]
            if covers(parts, shape):
                many = "" if any(_is_whole(part, shape) for part in parts) else PART_BY_PART
                return layout, text_of(layout) + many
        return _window(seen, given) if self.windows else None

    def _choices(self, whole: Shape, local: Shape) -> tuple[Layout, ...]:
        if (whole, local) not in self._layouts:
            all_of_them = layouts(whole, local, self.mesh)
            fine = (each for each in all_of_them if all(split.digits() is not None for split in each))
            self._layouts[whole, local] = tuple(fine)
        return self._layouts[whole, local]

    def _part(self, layout: Layout, window: Window, whole: Shape) -> IndexMap:
        """A window of a tensor that consists of parts, each laid out by itself, one after the other."""
        blocks = {split.dim: split.blocks for split in layout}
        starts = {dim: start * blocks.get(dim, 1) for dim, (start, _) in enumerate(window[1:])}
        sizes = tuple(size for _, size in window[1:])
        return index_of(layout, sizes, whole, self.mesh, starts)


def _window(seen: Sequence[View], given: IndexMap) -> tuple[Layout, str] | None:
    """What is a window of the baseline's value along one dimension."""
    for view in seen:
        index = solve([view.index], [given]) if view.is_whole else None
        if index is None or len(index.domain) != len(index.codomain):
            continue
        starts = [coordinate.offset for coordinate in index.coordinates]
        windows = tuple(
            along(dim, size, offset=start)
            for dim, (size, start) in enumerate(zip(index.domain, starts, strict=True))
        )
        smaller = [dim for dim, size in enumerate(index.domain) if size < index.codomain[dim]]
        if index.coordinates == windows and len(smaller) == 1:
            first = starts[smaller[0]]
            last = first + index.domain[smaller[0]] - 1
            return (), f"{first}-{last} of dimension {smaller[0] - 1}"
    return None


def _terms(region: Region, proof: RegionProof) -> RegionTerms:
    """The proof's own terms, unless it was made for an equal region of other nodes."""
    known = proof.region_terms
    own = all(node.id in known.candidate.accesses for node in region.candidate)
    given = all(node.id in known.baseline.accesses for node in region.baseline)
    return known if own and given else terms_of(region)


def _nothing_wanted(goal: int, view: View) -> bool:
    return False


def _goodness(standing: Standing) -> tuple[bool, bool, bool, bool, bool]:
    return (
        standing.is_clean,
        standing.layout is not None,
        standing.is_related and standing.scale == 1,
        standing.is_related,
        standing.partial is None,
    )


def _is_whole(window: Window, shape: Shape) -> bool:
    return all(part == (0, size) for part, size in zip(window, shape, strict=True))


def covers(windows: Sequence[Window], shape: Shape) -> bool:
    """Whether windows that differ along one dimension make up the whole."""
    if any(_is_whole(window, shape) for window in windows):
        return True
    for dim, size in enumerate(shape):
        inside = [
            window[dim]
            for window in windows
            if all(part == (0, shape[d]) for d, part in enumerate(window) if d != dim)
        ]
        reached = 0
        for start, extent in sorted(inside):
            if start <= reached:
                reached = max(reached, start + extent)
        if reached == size and inside:
            return True
    return False
