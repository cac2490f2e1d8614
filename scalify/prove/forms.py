"""Other forms of a term: the same value as another operation, where that is known from the term alone.

A combination over ranks is a fold over digits of the rank, and a fold of a fold is one fold. Which form has
a counterpart depends on the baseline, so an engine gets all of them, as one class.
"""

from collections.abc import Iterator

from scalify.layout.digits import Term as Digit
from scalify.layout.digits import summed
from scalify.layout.maps import IndexMap, along
from scalify.layout.ranks import without
from scalify.layout.views import RankDigits
from scalify.normalize.terms import Access, Term, TermId, Terms, combination
from scalify.normalize.windows import opened
from scalify.prove.rules.counterpart import FOLDS


def forms_of(terms: Terms, number: TermId) -> tuple[Term, ...]:
    """The term and its other forms."""
    return tuple(_forms(terms, terms[number]))


def _forms(terms: Terms, term: Term) -> Iterator[Term]:
    yield term
    over = combination(term.op)
    if over is not None and over[0] in FOLDS:
        spread = _over_digits(terms, term, *over)
        if spread is not None:
            yield from _forms(terms, spread)
    if term.op in FOLDS and term.reduced and len(term.operands) == 1:
        (access,) = term.operands
        inner = terms[access.term]
        if inner.op == term.op and inner.reduced:
            joined = _joined(terms, term, access, inner)
            if joined is not None:
                yield from _forms(terms, joined)


def _over_digits(terms: Terms, term: Term, kind: str, digits: RankDigits) -> Term | None:
    """A combination over ranks as a fold: digits of the rank are read from dimensions of their own.

    None where the operand reads digits of unlike radices: of six ranks the third of a rank that is even.
    """
    (access,) = term.operands
    space = term.space
    domain = (*space, *(size for _, size in digits))
    rest = without(((1, space[0]),), digits)
    if rest is None:
        raise AssertionError(f"digits {digits} are of {space[0]} ranks")
    rank = summed(
        0,
        [
            *(Digit(0, stride, size, stride) for stride, size in rest),
            *(Digit(len(space) + place, 1, size, stride) for place, (stride, size) in enumerate(digits)),
        ],
    )
    coordinates = (rank, *(along(dim, size) for dim, size in enumerate(space) if dim))
    read = terms.read(IndexMap(domain, space, coordinates), access)
    return None if read is None else Term(kind, space, (read,), len(digits))


def _joined(terms: Terms, term: Term, access: Access, inner: Term) -> Term | None:
    """A fold of a fold: the inner one's dimensions after the outer one's."""
    (read,) = opened(terms, access)
    return None if read is None else Term(term.op, term.space, (read,), term.reduced + inner.reduced)
