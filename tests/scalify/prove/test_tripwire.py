"""An engine stops where two shapes, inputs or constants become one: a wrong rule is noticed as it runs."""

from pathlib import Path
from typing import Any

import pytest

from scalify.ir.build import GraphBuilder
from scalify.normalize.lower import as_leaves, lower
from scalify.normalize.terms import TermId, Terms
from scalify.prove.bindings import new_engine
from scalify.prove.encoding import encode, program
from scalify.prove.naming import Names

WRONG = {
    "a fold is its operand": '(rule ((= c (Op1 "sum" k a x))) ((union c x)) :ruleset views)',
    "a sum is its first addend": '(rule ((= c (Op2 "add" k a x b y))) ((union c x)) :ruleset views)',
}
RIGHT = '(rule ((= c (Op2 "add" k a x b y))) ((union c (Op2 "add" k b y a x))) :ruleset views)'


def _engine(folder: Path, rule: str) -> Any:
    """An engine on a small graph, with one rule more, before it runs."""
    build = GraphBuilder("g")
    x, y = build.input("x", "f32", (2, 3)), build.input("y", "f32", (2, 3))
    total = build.add("reduce", build.add("add", x, y), kind="sum", axes=(1,))
    build.output("z", build.add("add", total, build.constant(2.0, "f32")))
    graph, terms = build.graph(), Terms()
    lower(graph.nodes, 1, as_leaves(graph, terms, ""), terms)
    tables = encode(terms, [*terms.numbers()], frozenset[TermId](), Names())
    engine = new_engine()
    for text in (program(), rule, tables.write(folder), "(run-schedule (saturate (run load)))"):
        engine.run_program(*engine.parse_program(text))
    return engine


def _run(engine: Any) -> None:
    """Only rules that need no callback are asked here: those that unite."""
    engine.run_program(*engine.parse_program("(run-schedule (repeat 3 (run views)))"))


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_rule_trips(name: str, tmp_path: Path) -> None:
    engine = _engine(tmp_path, WRONG[name])
    with pytest.raises(Exception, match=r"Illegal merge attempted for function (space|leaf)"):
        _run(engine)


def test_a_right_rule_does_not(tmp_path: Path) -> None:
    _run(_engine(tmp_path, RIGHT))


@pytest.mark.parametrize("function", ["space", "leaf"])
def test_what_trips(function: str, tmp_path: Path) -> None:
    """Terms of other shapes; inputs of one shape."""
    engine = _engine(tmp_path, "")
    one, other = (0, 3) if function == "space" else (0, 1)
    with pytest.raises(Exception, match=f"Illegal merge attempted for function {function}"):
        engine.run_program(*engine.parse_program(f"(union (T {one}) (T {other}))"))
        _run(engine)
