"""Where two systems stop agreeing: the first value, in order of execution, that tells them apart.

In: two profiles and their matching, where declared outputs differ. Out: the value on both sides, or None
where everything that can be compared agrees. Sources come before what is computed from them. Sketches
do not see the order of elements; the seeded projections do, and tell swapped prompts and heads apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from magneton.match.classes import Classes, classify
from magneton.match.distance import threshold
from magneton.match.model import Leftover, Matching, ValuePair
from magneton.match.wiring import Wiring, wire
from magneton.profile.distance import distance
from magneton.profile.model import Operator, OpId, Profile, ValueId

# Of a projection, relative to what independent elements would give:
SOURCE_NOISE = 1e-6  # sources are copies of each other, or they are not
NOISE = 2e-2  # of what was computed, in whatever order and precision
FINE_NOISE = 1e-4  # the same in float32 or better, where a small change must not pass for rounding
ONE_NUMBER = 0.3  # how far a sketch moves, times sqrt(n) and over the projection, is about 2 if one changed
FINE_DTYPES = ("float32", "float64", "complex64", "complex128")

Kind = Literal["values", "order"]
Shown = tuple[ValueId, ValueId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """``order``: the same numbers in another order. ``values``: other numbers."""

    kind: Kind
    baseline: ValueId
    candidate: ValueId


def first_divergence(baseline: Profile, candidate: Profile, matching: Matching) -> Divergence | None:
    judge = _Judge(baseline, candidate, matching)
    found = next(judge.sources(), None)
    if found is None:
        found = min((*judge.reordered(), *judge.unmatched()), key=lambda item: item[0], default=None)
        found = judge.changed_source() if found is None else found[1:]
    if found is None:
        return None
    kind, (value_x, value_y) = found
    return Divergence(kind=kind, baseline=value_x, candidate=value_y)


class _Judge:
    def __init__(self, baseline: Profile, candidate: Profile, matching: Matching) -> None:
        self._baseline = baseline
        self._candidate = candidate
        self._matching = matching
        phases = dict.fromkeys(op.phase for op in baseline.operators)
        self._sides = [(_classified(baseline, p), _classified(candidate, p)) for p in phases]

    def sources(self, *, exonerate: bool = True) -> Iterator[tuple[Kind, Shown]]:
        """Named sources that differ; with ``exonerate``, unless all that is computed from them agrees."""
        named = {v.name: v for v in self._candidate.values if v.producer is None and v.name}
        for value in self._baseline.values:
            other = named.get(value.name) if value.producer is None else None
            if other is None or other.shape != value.shape:
                continue
            shown = value.value_id, other.value_id
            kind = self._differs(*shown, SOURCE_NOISE)
            if kind is not None and not (exonerate and self._is_exonerated(shown[0])):
                yield "values" if self._is_edited(*shown) else kind, shown

    def changed_source(self) -> tuple[Kind, Shown] | None:
        """One with other numbers: no way of storing explains it, though nothing computed shows it."""
        return next((found for found in self.sources(exonerate=False) if found[0] == "values"), None)

    def reordered(self) -> Iterator[tuple[int, Kind, Shown]]:
        """Computed pairs whose elements come in another order, by position in the baseline."""
        for pair in self._matching.pairs:
            at = self._baseline.values[pair.baseline[0]].producer
            if at is not None and pair.evidence != "output" and (shown := self._reordered(pair)):
                yield int(at), "order", self._moved_before(pair) or shown

    def unmatched(self) -> Iterator[tuple[int, Kind, Shown]]:
        """The first values after which nothing is matched any more."""
        for region in self._matching.regions:
            outputs = [k for k in region.produces if self._matching.pairs[k].evidence == "output"]
            if any(self._output_differs(self._matching.pairs[k]) for k in outputs):
                yield from self._first_of(region.baseline, region.candidate)
        lost = _lost(self._matching.only_baseline), _lost(self._matching.only_candidate)
        yield from self._first_of(*lost)

    def _first_of(self, ops_x: Sequence[OpId], ops_y: Sequence[OpId]) -> Iterator[tuple[int, Kind, Shown]]:
        first_x, first_y = _computed(self._baseline, ops_x), _computed(self._candidate, ops_y)
        if not first_x or not first_y:
            yield from self._added(first_x, first_y)
            return
        op_x = first_x[0]
        sizes = _sizes(self._baseline, op_x)
        op_y = next((op for op in first_y if _sizes(self._candidate, op) == sizes), first_y[0])
        if moved := self._moved_operand(op_x, op_y):
            yield int(op_x.op_id), "order", moved
            return
        sources = self._unmatched_sources(op_x, op_y)
        yield int(op_x.op_id), "values", sources or (op_x.outputs[0], op_y.outputs[0])

    def _added(
        self, ops_x: Sequence[Operator], ops_y: Sequence[Operator]
    ) -> Iterator[tuple[int, Kind, Shown]]:
        """What one side makes of a value where the other is done with it. Anything else is told before."""
        last = len(self._baseline.operators)
        for x, y in ((x, op.outputs[0]) for op in ops_y for x, _ in self._counterparts(candidate=op.inputs)):
            yield last, "values", (x, y)
        for x, y in ((op.outputs[0], y) for op in ops_x for _, y in self._counterparts(baseline=op.inputs)):
            yield last, "values", (x, y)

    def _counterparts(
        self, *, baseline: Sequence[ValueId] = (), candidate: Sequence[ValueId] = ()
    ) -> Iterator[Shown]:
        """Computed pairs that one of these values belongs to, in whatever arrangement."""
        for pair in self._matching.pairs:
            x, y = pair.baseline[0], pair.candidate[0]
            for side_x, side_y in self._sides:
                known = {*_members(side_x, x)} & {*baseline} or {*_members(side_y, y)} & {*candidate}
                if known and self._baseline.values[x].producer is not None:
                    yield x, y

    def _moved_before(self, pair: ValuePair) -> Shown | None:
        """Where what ``pair`` is computed from came into another order already."""
        at_x = self._baseline.values[pair.baseline[0]].producer
        at_y = self._candidate.values[pair.candidate[0]].producer
        if at_x is None or at_y is None:
            return None
        return self._moved_operand(self._baseline.operators[at_x], self._candidate.operators[at_y])

    def _moved_operand(self, op_x: Operator, op_y: Operator) -> Shown | None:
        """Where an operand of both came into another order; None where every operand is as on the other side.

        A permutation of recognised numbers is recognised too: what shows it is who reads it.
        """
        values_x, values_y = self._baseline.values, self._candidate.values
        for x, y in zip(op_x.inputs, op_y.inputs, strict=False):
            moved = values_x[x].shape == values_y[y].shape and self._differs(x, y, NOISE) == "order"
            if moved and self._distance(x, y) <= FINE_NOISE:
                return self._first_moved(x, y)
        return None

    def _first_moved(self, x: ValueId, y: ValueId) -> Shown:
        """Of the arrangements of one value on the candidate's side, the first that the baseline never has."""
        values_x, values_y = self._baseline.values, self._candidate.values
        for side_x, side_y in self._sides:
            for one in _members(side_y, y):
                alike = [o for o in _members(side_x, x) if values_x[o].shape == values_y[one].shape]
                if alike and all(self._differs(other, one, NOISE) == "order" for other in alike):
                    return alike[0], one
        return x, y

    def _unmatched_sources(self, op_x: Operator, op_y: Operator) -> Shown | None:
        """Parameters of equal size that the two operators read and no pair knows."""
        known_x = {v for pair in self._matching.pairs for v in pair.baseline}
        known_y = {v for pair in self._matching.pairs for v in pair.candidate}
        ours = _read_sources(self._baseline, op_x)
        theirs = _read_sources(self._candidate, op_y)
        sketches_x, sketches_y = self._baseline.sketches, self._candidate.sketches
        return next(
            (
                (x, y)
                for x in ours
                for y in theirs
                if x not in known_x and y not in known_y and sketches_x.count[x] == sketches_y.count[y]
            ),
            None,
        )

    def _differs(self, x: ValueId, y: ValueId, noise: float) -> Kind | None:
        """None where the two agree or cannot be compared."""
        sketches_x, sketches_y = self._baseline.sketches, self._candidate.sketches
        if not sketches_x.known[x] or not sketches_y.known[y]:
            return None
        if self._distance(x, y) > float(threshold(sketches_x.count[[x]])[0]):
            return "values"
        spread = float(sketches_x.rms[x]) * float(sketches_x.count[x]) ** 0.5
        apart = abs(sketches_x.projection[x] - sketches_y.projection[y])
        return "order" if float(apart.max()) > noise * spread else None

    def _is_edited(self, x: ValueId, y: ValueId) -> bool:
        """Whether numbers changed, and did not only trade places: a sketch is blind to places."""
        sketches_x, sketches_y = self._baseline.sketches, self._candidate.sketches
        apart = abs(sketches_x.projection[x] - sketches_y.projection[y]).max()
        return self._distance(x, y) * float(sketches_x.count[x] * sketches_x.rms[x]) > ONE_NUMBER * float(
            apart
        )

    def _distance(self, x: ValueId, y: ValueId) -> float:
        return distance(self._baseline.sketches, x, self._candidate.sketches, y)

    def _reordered(self, pair: ValuePair, *, noise: float = NOISE) -> Shown | None:
        """Members of equal shape, none of which agrees with any in the order of elements."""
        if len(pair.baseline) != 1 or len(pair.candidate) != 1:
            return None
        values_x, values_y = self._baseline.values, self._candidate.values
        alike = [
            (x, y)
            for side_x, side_y in self._sides
            for x in _members(side_x, pair.baseline[0])
            for y in _members(side_y, pair.candidate[0])
            if values_x[x].shape == values_y[y].shape
        ]
        agree = (self._differs(x, y, noise) is None for x, y in alike)
        return None if not alike or any(agree) else alike[0]

    def _is_exonerated(self, value: ValueId) -> bool:
        """Whether all that its regions make of ``value`` agrees (a square matrix stored transposed)."""
        indices = {k for k, pair in enumerate(self._matching.pairs) if value in pair.baseline}
        readers = [r for r in self._matching.regions if indices & set(r.consumes)]
        made = [self._matching.pairs[k] for region in readers for k in region.produces]
        return bool(made) and not any(
            pair.evidence == "output" or self._reordered(pair, noise=self._noise_of(pair)) is not None
            for pair in made
        )

    def _noise_of(self, pair: ValuePair) -> float:
        return FINE_NOISE if self._baseline.values[pair.baseline[0]].dtype in FINE_DTYPES else NOISE

    def _output_differs(self, pair: ValuePair) -> bool:
        return self._differs(pair.baseline[0], pair.candidate[0], NOISE) is not None


def _classified(profile: Profile, phase: str) -> tuple[Wiring, Classes]:
    wiring = wire(profile, phase)
    return wiring, classify(wiring)


def _members(side: tuple[Wiring, Classes], value: ValueId) -> Sequence[ValueId]:
    _, classes = side
    if value not in classes.of:
        return ()
    which, generation = classes.of[value], classes.generation[value]
    return [ValueId(v) for v in classes.members[which] if classes.generation[v] == generation]


def _lost(leftovers: Sequence[Leftover]) -> tuple[OpId, ...]:
    expected = ("sync", "setup", "dead", "side-effect", "alloc")
    return tuple(left.op_id for left in leftovers if left.reason not in expected)


def _computed(profile: Profile, ops: Sequence[OpId]) -> list[Operator]:
    rows = (profile.operators[op] for op in sorted(ops))
    return [op for op in rows if op.effect == "compute" and op.outputs]


def _sizes(profile: Profile, op: Operator) -> tuple[int, ...]:
    return tuple(int(profile.sketches.count[value]) for value in op.outputs)


def _read_sources(profile: Profile, op: Operator) -> list[ValueId]:
    """Parameters and buffers that ``op`` reads, through views."""
    found: list[ValueId] = []
    for read in op.inputs:
        value = read
        while (at := profile.values[value].producer) is not None and profile.operators[at].effect == "view":
            value = profile.operators[at].inputs[0]
        if profile.values[value].role in ("parameter", "buffer"):
            found.append(value)
    return found
