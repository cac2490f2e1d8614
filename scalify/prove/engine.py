"""One egglog engine on one problem: load, saturate in slices, say what was reached and why it stopped.

In: terms of both sides, which of them are asked to correspond, and a budget. Out: every view that was
derived, each with its rule and premises, in an order in which premises come first.

The engine calls back into Python for index maps. It finds the functions by name in this module, so one
engine runs at a time in a process (egglog binds an engine to its thread anyway).
"""

import threading
from ast import literal_eval
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from scalify.layout.views import View
from scalify.normalize.terms import TermId, Terms, combination
from scalify.prove.bindings import new_engine
from scalify.prove.encoding import Tables, encode, program
from scalify.prove.naming import Names
from scalify.prove.rules.counterpart import Reading, counterpart
from scalify.prove.rules.pieces import assembled, completed, piece, united
from scalify.prove.rules.ranks import over_ranks, owned
from scalify.prove.rules.scales import scaled, unscaled

if TYPE_CHECKING:
    from egglog.bindings import EGraph


class StopReason(Enum):
    """Why an engine stopped."""

    REACHED = "every goal reached"
    SATURATED = "nothing more follows"
    FACTS = "the budget of facts is spent"
    TIME = "the budget of time is spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one engine may spend. Slices are short: nothing can be stopped within one, so a problem of more
    than ``terms`` terms is not begun."""

    terms: int = 50_000
    facts: int = 200_000
    duration_s: float = 60.0


class Derivation(NamedTuple):
    """``candidate`` is a view of ``baseline``, by ``rule`` from ``premises`` (as the rule's note says)."""

    rule: str
    candidate: TermId
    baseline: TermId
    view: str
    premises: tuple[object, ...]


Reach = Callable[[int, View], bool]
"""Told of every view between the terms of a goal, by its number; answers whether nothing more is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """What an engine found."""

    derivations: tuple[Derivation, ...]
    stop_reason: StopReason
    names: Names


@dataclass
class _Session:
    names: Names
    terms: Terms
    reach: Reach
    is_done: bool = False
    derivations: list[Derivation] = field(default_factory=list)
    answers: dict[tuple[str, str], str] = field(default_factory=dict)


_session: list[_Session] = []
_kept = threading.local()


def saturate(
    terms: Terms,
    used: Sequence[TermId],
    baseline: frozenset[TermId],
    goals: Sequence[tuple[TermId, TermId]],
    reach: Reach,
    budget: Budget,
) -> Saturation:
    """Derive views until ``reach`` has what it needs of the goals (candidate, baseline), nothing follows, or
    the budget is spent."""
    names = Names()
    if len(used) > budget.terms:
        return Saturation(derivations=(), stop_reason=StopReason.FACTS, names=names)
    tables = encode(terms, used, baseline, names)
    for number, (candidate, target) in enumerate(goals):
        tables.row("goal0", number, candidate, target)
    session = _Session(names, terms, reach)
    _session.append(session)
    try:
        with _engine() as graph:
            _load(graph, tables)
            reason = _run(graph, session, budget)
    finally:
        _session.remove(session)
    return Saturation(
        derivations=tuple(session.derivations),
        stop_reason=reason,
        names=names,
    )


@contextmanager
def _engine() -> "Generator[EGraph]":
    """An engine that knows the rules and nothing else. Compiling the rules costs as much as a small proof, so
    each thread keeps one and takes back what a problem told it; one that failed is not used again."""
    graph: EGraph | None = getattr(_kept, "graph", None)
    if graph is None:
        graph = new_engine()
        _do(graph, program())
        for name in CALLBACKS:
            code = f"__import__('{__name__}', fromlist=['x']).CALLBACKS['{name}']"
            _do(graph, f'(set (do-{name}) (py-eval "{code}" (py-dict) (py-dict)))')
    _kept.graph = None
    _do(graph, "(push)")
    yield graph
    _do(graph, "(pop)")
    _kept.graph = graph


def _load(graph: "EGraph", tables: Tables) -> None:
    with TemporaryDirectory(prefix="scalify-") as folder:
        _do(graph, tables.write(Path(folder)))
    _do(graph, "(run-schedule (saturate (run load)))")


def _do(graph: "EGraph", text: str) -> None:
    graph.run_program(*graph.parse_program(text))


def _run(graph: "EGraph", session: _Session, budget: Budget) -> StopReason:
    start_s = monotonic()
    known = -1
    while True:
        _do(graph, "(run-schedule (repeat 4 (run views)))")
        if session.is_done:
            return StopReason.REACHED
        if len(session.derivations) == known:
            return StopReason.SATURATED
        known = len(session.derivations)
        if known > budget.facts:
            return StopReason.FACTS
        if monotonic() - start_s > budget.duration_s:
            return StopReason.TIME


def _memo(rule: str, text: str, compute: Callable[[_Session, Sequence[str]], View | None]) -> str:
    """The name of the view that a rule concludes; the engine asks again for what it has forgotten."""
    session = _session[-1]
    answer = session.answers.get((rule, text))
    if answer is None:
        answer = session.names.of_view(compute(session, text.split("|")))
        session.answers[rule, text] = answer
    return answer


def _reading(session: _Session, access: str, view: str) -> Reading:
    return Reading(session.names.maps[access], session.names.views[view])


# The engine keeps these functions by name, so each is one of the module. It hands over one text: handing
# over each argument as an object of its own costs more than most rules.


def _counterpart(text: str) -> str:
    return _memo("counterpart", text, _counterpart_view)


def _counterpart_view(session: _Session, cells: Sequence[str]) -> View | None:
    op, reduced, given_reduced, *rest = cells
    readings = [_reading(session, a, v) for a, v in zip(rest[::3], rest[1::3], strict=True)]
    given = [session.names.maps[name] for name in rest[2::3]]
    return counterpart(session.names.ops[op], readings, int(reduced), given, int(given_reduced))


def _over_ranks(text: str) -> str:
    return _memo("over-ranks", text, _over_ranks_view)


def _over_ranks_view(session: _Session, cells: Sequence[str]) -> View | None:
    op, access, view = cells
    found = combination(session.names.ops[op])
    if found is None:
        raise AssertionError(f"{op} combines nothing")
    return over_ranks(*found, _reading(session, access, view))


def _owned(text: str) -> str:
    return _memo("owned", text, _owned_view)


def _owned_view(session: _Session, cells: Sequence[str]) -> View | None:
    owners, access, view = cells
    digits = literal_eval(session.names.ops[owners].removeprefix("owners:"))
    return owned(digits, _reading(session, access, view))


def _scaled(text: str) -> str:
    return _memo("scaled", text, lambda s, cells: scaled(_reading(s, *cells[:2]), Fraction(cells[2])))


def _unscaled(text: str) -> str:
    return _memo(
        "unscaled",
        text,
        lambda s, cells: unscaled(s.names.views[cells[0]], s.names.maps[cells[1]], Fraction(cells[2])),
    )


def _piece(text: str) -> str:
    return _memo("piece", text, _piece_view)


def _piece_view(session: _Session, cells: Sequence[str]) -> View | None:
    term, axis, start, access, view = cells
    space = session.terms[TermId(int(term))].space
    return piece(_reading(session, access, view), space, int(axis), int(start))


def _assembled(text: str) -> str:
    return _memo("assembled", text, _assembled_view)


def _assembled_view(session: _Session, cells: Sequence[str]) -> View | None:
    term, axis, start, view, given = cells
    space = session.terms[TermId(int(term))].space
    return assembled(session.names.views[view], session.names.maps[given], space, int(axis), int(start))


def _completed(text: str) -> str:
    return _memo("completed", text, _completed_view)


def _completed_view(session: _Session, cells: Sequence[str]) -> View | None:
    term, axis, start, view, given, beside = cells
    space = session.terms[TermId(int(term))].space
    views, index = session.names.views, session.names.maps[given]
    return completed(views[view], index, space, int(axis), int(start), views[beside])


def _united(text: str) -> str:
    return _memo("united", text, lambda s, cells: united(s.names.views[cells[0]], s.names.views[cells[1]]))


def _note(text: str) -> None:
    rule, candidate, baseline, view, *premises = text.split("|")
    told = tuple(int(cell) if cell.isdigit() else cell for cell in premises)
    _session[-1].derivations.append(
        Derivation(rule, TermId(int(candidate)), TermId(int(baseline)), view, told)
    )


def _reach(text: str) -> None:
    goal, view = text.split("|")
    session = _session[-1]
    session.is_done = session.reach(int(goal), session.names.views[view]) or session.is_done


CALLBACKS = {
    "counterpart": _counterpart,
    "over-ranks": _over_ranks,
    "owned": _owned,
    "scaled": _scaled,
    "unscaled": _unscaled,
    "piece": _piece,
    "assembled": _assembled,
    "completed": _completed,
    "united": _united,
    "note": _note,
    "reach": _reach,
}
