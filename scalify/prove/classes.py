"""Which terms are equal: the classes that an engine makes, made without it.

Terms are equal where normalisation says so, where they have a form in common, and where they are the same
operation on equal operands, in either order if the operation commutes. The closure under these is computed
once, by plain union and find.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from scalify.layout.maps import IndexMap
from scalify.normalize.terms import Access, TermId, Terms
from scalify.prove.encoding import COMMUTATIVE, WIDEST
from scalify.prove.forms import forms_of

Operands = tuple[tuple[IndexMap, TermId], ...]


class _Node(NamedTuple):
    """A term in one of its forms; maps by number."""

    term: TermId
    op: str
    reduced: int
    operands: tuple[tuple[int, TermId], ...]


class Classes:
    """The classes of some terms."""

    def __init__(self, terms: Terms, used: Sequence[TermId]) -> None:
        self._parent = {number: number for number in used}
        self._maps: dict[IndexMap, int] = {}
        self._nodes = [node for number in used for node in self._forms(terms, number)]
        for number in used:
            for other in terms.equal.get(number, ()):
                self._join(number, other)
        self._close()
        self._known = {self._signature(node) for node in self._nodes}
        self._signatures: dict[TermId, set[object]] = {}
        for node in self._nodes:
            self._signatures.setdefault(self.of(node.term), set()).add(self._signature(node))

    def __contains__(self, number: TermId) -> bool:
        return number in self._parent

    def of(self, number: TermId) -> TermId:
        """The least term of the class: its name."""
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

    def members(self, number: TermId) -> Iterable[TermId]:
        """All terms of the class."""
        name = self.of(number)
        return [other for other in self._parent if self.of(other) == name]

    def computes(self, number: TermId, op: str, reduced: int, operands: Operands) -> bool:
        """Whether the class has this operation among its forms."""
        places = tuple((self._maps.get(index, -1), operand) for index, operand in operands)
        wanted = self._signature(_Node(number, op, reduced, places))
        return wanted in self._signatures.get(self.of(number), ())

    def _forms(self, terms: Terms, number: TermId) -> list[_Node]:
        term = terms[number]
        if not 1 <= len(term.operands) <= WIDEST or term.op.startswith("cat:"):
            return []
        return [
            _Node(number, form.op, form.reduced, tuple(self._place(access) for access in form.operands))
            for form in forms_of(terms, number)
        ]

    def _place(self, access: Access) -> tuple[int, TermId]:
        return self._maps.setdefault(access.index, len(self._maps)), access.term

    def _signature(self, node: _Node) -> object:
        operands = [(self.of(operand), place) for place, operand in node.operands]
        if node.op in COMMUTATIVE and len(operands) == 2:
            operands.sort()
        return node.op, node.reduced, tuple(operands)

    def _close(self) -> None:
        """Join terms with a form in common until nothing changes."""
        changed = True
        while changed:
            changed = False
            owner: dict[object, TermId] = {}
            for node in self._nodes:
                first = owner.setdefault(self._signature(node), node.term)
                changed = self._join(first, node.term) or changed

    def _join(self, one: TermId, other: TermId) -> bool:
        first, second = self.of(one), self.of(other)
        if first == second:
            return False
        self._parent[max(first, second)] = min(first, second)
        return True
