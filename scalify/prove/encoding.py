"""A problem as an egglog program: schema, rules, and tables of facts."""

from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from scalify.layout.maps import identity
from scalify.layout.views import whole
from scalify.normalize.alive import leaves_open
from scalify.normalize.terms import Term, TermId, Terms, combination, number_of
from scalify.prove.forms import forms_of
from scalify.prove.naming import Names
from scalify.prove.rules.ranks import owners

COMMUTATIVE = ("add", "mul", "max", "min", "eq", "ne", "and", "or", "xor")


WIDEST = 3
"""Operations with more operands are joined with nothing: they are equal only as the same term."""


def program() -> str:
    """Schema and rules."""
    fixed = files("scalify.prove").joinpath("views.egg").read_text(encoding="utf-8")
    rules = [_counterpart(arity) for arity in range(1, WIDEST + 1)]
    rules += [_commuted(op) for op in COMMUTATIVE]
    return "\n".join([fixed, *rules])


def _counterpart(arity: int) -> str:
    """The rule that joins a candidate's operation with the baseline's of the same kind."""
    places = range(arity)
    own = " ".join(f"a{i} x{i}" for i in places)
    other = " ".join(f"p{i} u{i}" for i in places)
    views = " ".join(f"(view x{i} u{i} l{i})" for i in places)
    names = " ".join(f"(= ix{i} (name x{i})) (= iu{i} (name u{i}))" for i in places)
    head = 'op "|" (to-string k) "|" (to-string k2)'
    asked = "".join(f' "|" a{i} "|" l{i} "|" p{i}' for i in places)
    noted = "".join(
        f' "|" a{i} "|" (to-string ix{i}) "|" l{i} "|" p{i} "|" (to-string iu{i})' for i in places
    )
    return f"""
(rule ((cand c) (= c (Op{arity} op k {own})) {views}
       (base d) (= d (Op{arity} op k2 {other}))
       (= v (py-to-string (py-call (do-counterpart) (py-from-string (+ {head}{asked})))))
       (!= v "")
       (= note (do-note)) (= ic (name c)) (= id (name d)) {names})
      ((view c d v)
       (let noted (py-call note (py-from-string
          (+ "counterpart|" (to-string ic) "|" (to-string id) "|" v "|" {head}{noted})))))
      :ruleset views :name "counterpart{arity}")"""


def _commuted(op: str) -> str:
    return (
        f'(rule ((cand c) (= c (Op2 "{op}" k a x b y))) ((union c (Op2 "{op}" k b y a x)))'
        f' :ruleset views :name "commuted-{op}")'
    )


class Tables:
    """Rows for egglog's ``input``, one file a relation."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, None]] = {}

    def row(self, relation: str, *cells: object) -> None:
        """One fact."""
        self._rows.setdefault(relation, {})["\t".join(str(cell) for cell in cells)] = None

    def write(self, folder: Path) -> str:
        """Write all tables; the program that reads them."""
        for relation, rows in self._rows.items():
            (folder / f"{relation}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        return "\n".join(f'(input {relation} "{folder / relation}.tsv")' for relation in self._rows)


def encode(terms: Terms, used: Sequence[TermId], baseline: frozenset[TermId], names: Names) -> Tables:
    """The terms of a problem as facts: what they are, on which side, and the views known from the start."""
    tables = Tables()
    for number in used:
        term = terms[number]
        is_baseline = number in baseline
        for other in terms.equal.get(number, ()):
            tables.row("same0", number, other)
        tables.row("side", number, 0 if is_baseline else 1)
        tables.row("space0", number, "x".join(map(str, term.space)))
        if not term.operands:
            tables.row("leaf0", number)
        if is_baseline or not term.operands:
            tables.row("seen", number, number, names.of_same(term.space))
        if combination(term.op) is not None:
            tables.row("combines", names.of_op(term.op))
        if term.op.startswith("cat:"):
            _pieces(tables, number, term, names)
        elif 1 <= len(term.operands) <= WIDEST:
            for form in forms_of(terms, number):
                _operation(tables, number, form, terms, names)
        else:
            tables.row("term0", number)
    _multiples(tables, terms, used, baseline, names)
    return tables


def _multiples(
    tables: Tables, terms: Terms, used: Iterable[TermId], baseline: frozenset[TermId], names: Names
) -> None:
    """A number is any other number, times a factor."""
    numbers = {term: value for term in used if (value := terms.finite_number(term))}
    for own, value in numbers.items():
        for given, other in numbers.items():
            if own not in baseline and given in baseline:
                tables.row("seen", own, given, names.of_view(whole(identity((1,)), value / other)))


def _operation(tables: Tables, number: TermId, term: Term, terms: Terms, names: Names) -> None:
    cells: list[object] = []
    for access in term.operands:
        name = names.of_map(access.index)
        cells += (name, access.term)
        value = number_of(terms, access)
        if value is not None:
            tables.row("factor0", access.term, name, value)
        digits = owners(terms, access)
        if digits:
            tables.row("owner0", access.term, name, names.of_op(f"owners:{digits}"))
    tables.row(f"term{len(term.operands)}", number, names.of_op(term.op), term.reduced, *cells)


def _pieces(tables: Tables, number: TermId, term: Term, names: Names) -> None:
    tables.row("term0", number)
    axis = int(term.op.removeprefix("cat:"))
    start = 0
    for access in term.operands:
        cells = number, axis, start, names.of_map(access.index), access.term
        tables.row("piece0", *cells)
        if leaves_open(access.index):
            tables.row("loose0", *cells)
        start += access.index.domain[axis]
