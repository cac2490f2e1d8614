"""What follows of views, by plain loops over all that is known: an oracle for the engine, without egglog.

It applies the same rule functions, and nothing else of the prover: every rule to every pair of terms, round
after round, until a round adds nothing. Terms that are one operation with other operands of the same value
are told by a naive congruence closure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations, product
from typing import NamedTuple

from scalify.layout.maps import identity
from scalify.layout.views import RankDigits, View, same, whole
from scalify.normalize.terms import Access, Term, TermId, Terms, combination, number_of
from scalify.prove.encoding import COMMUTATIVE, WIDEST
from scalify.prove.engine import Saturation
from scalify.prove.forms import forms_of
from scalify.prove.region import Goal, Region, RegionTerms, Shown, goal_terms, shown, terms_of
from scalify.prove.rules.counterpart import Reading, counterpart
from scalify.prove.rules.pieces import assembled, piece, united
from scalify.prove.rules.ranks import over_ranks, owned, owners
from scalify.prove.rules.scales import scaled, unscaled


class Fact(NamedTuple):
    """One term is a view of another, both by the first term that is equal to them."""

    candidate: TermId
    baseline: TermId
    view: View


class Operation(NamedTuple):
    """What computes a term: the operands by the first terms that are equal to them."""

    op: str
    reduced: int
    operands: tuple[Access, ...]


class Piece(NamedTuple):
    """A part of a concatenation."""

    axis: int
    start: int
    access: Access


_counterpart = cache(counterpart)


@dataclass
class Reasoner:
    """All that is known of a problem, by candidate's term and baseline's term."""

    terms: Terms
    used: Sequence[TermId]
    baseline: frozenset[TermId]
    first: dict[TermId, TermId] = field(init=False)
    operations: dict[TermId, list[Operation]] = field(init=False)
    pieces: dict[TermId, list[Piece]] = field(init=False)
    owners: dict[Access, set[RankDigits]] = field(init=False)
    views: dict[TermId, dict[TermId, dict[View, None]]] = field(init=False)

    def __post_init__(self) -> None:
        self.first = _first_equal(self)
        self.operations = {number: [] for number in self.used}
        self.pieces = {number: [] for number in self.used}
        self.owners = {}
        self.views = {number: {} for number in self.used}
        for number in self.used:
            own = self.first[number]
            self.operations[own] += self.ways(number, self.first)
            self.pieces[own] += self._pieces(number)
            for term in self._forms(number):
                for access in term.operands:
                    digits = owners(self.terms, access)
                    if digits:
                        self.owners.setdefault(self._named(access, self.first), set()).add(digits)

    def is_on(self, number: TermId, *, baseline: bool) -> bool:
        """Whether a term, or one equal to it, is computed on that side."""
        equal = (other for other, first in self.first.items() if first == number)
        return any((other in self.baseline) == baseline for other in equal)

    def ways(self, number: TermId, first: Mapping[TermId, TermId]) -> Iterator[Operation]:
        """The operations that compute a term; the candidate's with their operands in any order."""
        equal = [other for other, name in first.items() if name == first[number]]
        is_candidate = any(other not in self.baseline for other in equal)
        for term in self._forms(number):
            operands = tuple(self._named(access, first) for access in term.operands)
            free = is_candidate and term.op in COMMUTATIVE and len(operands) == 2
            for order in permutations(operands) if free else (operands,):
                yield Operation(term.op, term.reduced, order)

    def _forms(self, number: TermId) -> tuple[Term, ...]:
        term = self.terms[number]
        is_joined = 1 <= len(term.operands) <= WIDEST and not term.op.startswith("cat:")
        return forms_of(self.terms, number) if is_joined else ()

    def _named(self, access: Access, first: Mapping[TermId, TermId]) -> Access:
        return Access(access.index, first[access.term])

    def _pieces(self, number: TermId) -> Iterator[Piece]:
        term = self.terms[number]
        if term.op.startswith("cat:"):
            axis, start = int(term.op.removeprefix("cat:")), 0
            for access in term.operands:
                yield Piece(axis, start, self._named(access, self.first))
                start += access.index.domain[axis]

    def run(self) -> frozenset[Fact]:
        """Everything that follows."""
        for fact in self.seeds():
            self._learn(fact)
        numbers = sorted(set(self.first.values()))
        learns = True
        while learns:
            learns = False
            for number in numbers:
                for fact in [*self._conclusions(number)]:
                    learns = self._learn(fact) or learns
        return frozenset(
            Fact(own, given, view)
            for own, by_baseline in self.views.items()
            for given, views in by_baseline.items()
            for view in views
        )

    def _learn(self, fact: Fact) -> bool:
        views = self.views[fact.candidate].setdefault(fact.baseline, {})
        is_new = fact.view not in views
        views[fact.view] = None
        return is_new

    def seeds(self) -> Iterator[Fact]:
        """The baseline's terms and all leaves are themselves; a number is a multiple of any other."""
        for number in self.used:
            if number in self.baseline or not self.terms[number].operands:
                yield self.named(number, number, same(self.terms[number].space))
        numbers = {number: self.terms.finite_number(number) for number in self.used}
        for (own, value), (given, other) in product(numbers.items(), repeat=2):
            if value and other and own not in self.baseline and given in self.baseline:
                yield self.named(own, given, whole(identity((1,)), value / other))

    def named(self, own: TermId, given: TermId, view: View) -> Fact:
        """A fact of any two terms."""
        return Fact(self.first[own], self.first[given], view)

    def _conclusions(self, number: TermId) -> Iterator[Fact]:
        """What follows of one term from all that is known by now."""
        if self.is_on(number, baseline=False):
            yield from self._of_own_operation(number)
        yield from self._of_baselines_operations(number)
        for given, views in self.views[number].items():
            for one, other in permutations(views, 2):
                yield from _known(number, given, united(one, other))

    def _of_own_operation(self, number: TermId) -> Iterator[Fact]:
        for operation in self.operations[number]:
            yield from self._as_counterpart(number, operation)
            access = operation.operands[0]
            over = combination(operation.op)
            for given, reading in self._readings(access) if over else ():
                yield from _known(number, given, over_ranks(*over, reading) if over else None)
            if operation.op == "mul":
                yield from self._as_product(number, access, operation.operands[1])
        for part in self.pieces[number]:
            for given, reading in self._readings(part.access):
                space = self.terms[number].space
                yield from _known(number, given, piece(reading, space, part.axis, part.start))

    def _as_product(self, number: TermId, access: Access, other: Access) -> Iterator[Fact]:
        factor = number_of(self.terms, other)
        for given, reading in self._readings(access):
            if factor is not None:
                yield from _known(number, given, scaled(reading, factor))
            for digits in self.owners.get(other, ()):
                yield from _known(number, given, owned(digits, reading))

    def _as_counterpart(self, number: TermId, operation: Operation) -> Iterator[Fact]:
        for given in self._baselines():
            for other in self.operations[given]:
                if (other.op, len(other.operands)) != (operation.op, len(operation.operands)):
                    continue
                known = [
                    [Reading(own.index, view) for view in self.views[own.term].get(read.term, ())]
                    for own, read in zip(operation.operands, other.operands, strict=True)
                ]
                maps = tuple(access.index for access in other.operands)
                for readings in product(*known):
                    view = _counterpart(operation.op, readings, operation.reduced, maps, other.reduced)
                    yield from _known(number, given, view)

    def _of_baselines_operations(self, number: TermId) -> Iterator[Fact]:
        """The baseline multiplies by a number, or concatenates, what the term is a view of."""
        for given in self._baselines():
            for operation in self.operations[given]:
                if operation.op != "mul":
                    continue
                access, other = operation.operands
                factor = number_of(self.terms, other)
                for view in [*self.views[number].get(access.term, ())] if factor is not None else ():
                    assert factor is not None
                    yield from _known(number, given, unscaled(view, access.index, factor))
            space = self.terms[given].space
            for axis, start, access in self.pieces[given]:
                for view in [*self.views[number].get(access.term, ())]:
                    yield from _known(number, given, assembled(view, access.index, space, axis, start))

    def _baselines(self) -> Iterable[TermId]:
        return [number for number in sorted(set(self.first.values())) if self.is_on(number, baseline=True)]

    def _readings(self, access: Access) -> list[tuple[TermId, Reading]]:
        known = self.views[access.term].items()
        return [(given, Reading(access.index, view)) for given, views in known for view in views]


def _known(own: TermId, given: TermId, view: View | None) -> Iterator[Fact]:
    if view is not None:
        yield Fact(own, given, view)


def _first_equal(reasoner: Reasoner) -> dict[TermId, TermId]:
    """For each term the first that is equal to it: so noted, or the same operation on equal operands."""
    first = {number: number for number in reasoner.used}
    for number in reasoner.used:
        for other in reasoner.terms.equal.get(number, ()):
            first = _joined(first, first[number], first[other])
    while True:
        seen: dict[Operation, TermId] = {}
        before = first
        for number in reasoner.used:
            for way in [*reasoner.ways(number, first)]:
                first = _joined(first, seen.setdefault(way, first[number]), first[number])
        if first == before:
            return first


def _joined(first: dict[TermId, TermId], one: TermId, other: TermId) -> dict[TermId, TermId]:
    low, high = sorted((one, other))
    return first if low == high else {own: low if name == high else name for own, name in first.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the oracle says of a region: all facts, and of each goal everything that is shown."""

    reasoner: Reasoner
    facts: frozenset[Fact]
    shown: tuple[frozenset[Shown], ...]


def findings(region: Region) -> Findings:
    """Reason about a region."""
    lowered = terms_of(region)
    pairs = [goal_terms(goal, lowered) for goal in region.goals]
    used = needed(lowered.terms, [term for pair in pairs for term in pair])
    reasoner = Reasoner(lowered.terms, used, lowered.baseline_numbers)
    facts = reasoner.run()
    return Findings(
        reasoner=reasoner,
        facts=facts,
        shown=tuple(
            _shown(goal, lowered, reasoner.views[reasoner.first[own]].get(reasoner.first[given], ()))
            for goal, (own, given) in zip(region.goals, pairs, strict=True)
        ),
    )


def _shown(goal: Goal, lowered: RegionTerms, views: Iterable[View]) -> frozenset[Shown]:
    return frozenset(found for view in views if (found := shown(goal, lowered, view)) is not None)


def needed(terms: Terms, goals: Iterable[TermId]) -> list[TermId]:
    """The terms on which goals depend, or terms equal to those, operands first."""
    wanted: set[TermId] = set()
    more = set(goals)
    while more:
        wanted |= more
        read = {access.term for number in more for access in terms[number].operands}
        more = (read | {other for number in more for other in terms.equal.get(number, ())}) - wanted
    return sorted(wanted)


def facts_of(saturation: Saturation, reasoner: Reasoner) -> frozenset[Fact]:
    """What an engine derived and was given, in the oracle's names."""
    views = saturation.names.views
    derived = (reasoner.named(d.candidate, d.baseline, views[d.view]) for d in saturation.derivations)
    return frozenset((*derived, *reasoner.seeds()))
