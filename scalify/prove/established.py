"""What a checker has established of a region: terms made again, classes, facts so far."""

from dataclasses import dataclass, field
from fractions import Fraction

from scalify.layout.maps import IndexMap, Shape, identity
from scalify.layout.views import View, same, whole
from scalify.normalize.terms import Access, Term, TermId, number_of
from scalify.prove.certificate import RegionCertificate, Triple, text
from scalify.prove.certificate import whole as number
from scalify.prove.classes import Classes
from scalify.prove.region import RegionTerms, goal_terms, needed, terms_of


class Rejected(Exception):
    """A step of a certificate that does not follow."""


@dataclass
class Established:
    """A certificate beside the terms that its region has. Names and numbers in notes are looked up here;
    what is not there is rejected."""

    certificate: RegionCertificate
    lowered: RegionTerms
    classes: Classes
    facts: set[Triple] = field(default_factory=set)

    def term(self, cell: object) -> TermId:
        """The term of this number."""
        term = TermId(number(cell))
        if term not in self.classes:
            raise Rejected(f"there is no term {term}")
        return term

    def map(self, cell: object) -> IndexMap:
        """The map of this name."""
        index = self.certificate.maps.get(text(cell))
        if index is None:
            raise Rejected(f"there is no map {cell!r}")
        return index

    def view(self, cell: object) -> View:
        """The view of this name."""
        view = self.certificate.views.get(text(cell))
        if view is None:
            raise Rejected(f"there is no view {cell!r}")
        return view

    def op(self, cell: object) -> str:
        """The operation of this name."""
        op = self.certificate.ops.get(text(cell))
        if op is None:
            raise Rejected(f"there is no operation {cell!r}")
        return op

    def learn(self, own: TermId, other: TermId, view: str) -> None:
        """From here on it is a premise."""
        self.facts.add((self.classes.of(own), self.classes.of(other), view))

    def is_known(self, own: TermId, other: TermId, view: str) -> bool:
        """Established, or true of these terms whatever they are."""
        fact = self.classes.of(own), self.classes.of(other), view
        return fact in self.facts or self._is_evident(own, other, self.view(view))

    def known_views(self, own: TermId, other: TermId) -> list[View]:
        """All views of one term by another, with the evident one of equal terms."""
        pair = self.classes.of(own), self.classes.of(other)
        views = [self.view(view) for *known, view in self.facts if tuple(known) == pair]
        return [same(self.space(own)), *views] if pair[0] == pair[1] else views

    def _is_evident(self, own: TermId, other: TermId, view: View) -> bool:
        if self.classes.of(own) == self.classes.of(other) and view == same(self.space(own)):
            return True
        terms = self.lowered.terms
        first, second = terms.finite_number(own), terms.finite_number(other)
        return bool(first and second and view == whole(identity((1,)), first / second))

    def space(self, term: TermId) -> Shape:
        """The shape of a term."""
        return self.lowered.terms[term].space

    def must_compute(self, term: TermId, op: str, reduced: int, *operands: tuple[IndexMap, TermId]) -> None:
        """Reject unless the term, or an equal one, is this operation of these operands."""
        if not self.classes.computes(term, op, reduced, operands):
            raise Rejected(f"term {term} is no {op!r} of these operands")

    def factor(self, index: IndexMap, term: TermId) -> Fraction:
        """The number that a term is, read through a map."""
        for member in self.classes.members(term):
            if self.space(member) == index.codomain:
                value = number_of(self.lowered.terms, Access(index, member))
                if value is not None:
                    return value
        raise Rejected(f"term {term} is no number")

    def concatenation(self, term: TermId, axis: int, start: int, index: IndexMap, operand: TermId) -> Shape:
        """The space of a term, if it is a concatenation with this piece."""
        for member in self.classes.members(term):
            whole_term = self.lowered.terms[member]
            if whole_term.op == f"cat:{axis}" and self._has_piece(whole_term, axis, start, index, operand):
                return whole_term.space
        raise Rejected(f"term {term} has no such piece at {start}")

    def _has_piece(self, term: Term, axis: int, start: int, index: IndexMap, operand: TermId) -> bool:
        at = 0
        for access in term.operands:
            if at == start and access.index == index:
                return self.classes.of(access.term) == self.classes.of(operand)
            at += access.index.domain[axis]
        return False


def established(certificate: RegionCertificate, lowered: RegionTerms | None = None) -> Established:
    """Nothing but the terms of the region (made again if they are not at hand), and which are equal."""
    lowered = lowered or terms_of(certificate.region)
    pairs = [goal_terms(goal, lowered) for goal in certificate.region.goals]
    used = needed(lowered.terms, [term for pair in pairs for term in pair])
    return Established(certificate, lowered, Classes(lowered.terms, used))
