"""A file's source and what is to be changed in its functions in, both versions compiled out.

Whole files are compiled, so that closures, ``__class__`` and mangled names come out as they were. Lines stay.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import NamedTuple

from magneton.interventions import Edit, ForceBranch, SetArgument
from magneton.worker.interventions.refusal import Refusal

Function = ast.FunctionDef | ast.AsyncFunctionDef
Test = ast.If | ast.While | ast.IfExp


class Place(NamedTuple):
    """Where a function's code comes from in a file."""

    function: str
    first_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    before: CodeType  # of the whole module
    after: CodeType
    edited: tuple[frozenset[Place], ...]  # of each edit, the functions that it changed


def rewrite(source: bytes, file: str, edits: Sequence[Edit]) -> Rewritten:
    tree = ast.parse(source, file)
    before = compile(tree, file, "exec", dont_inherit=True)
    edited = tuple(_edit(tree, edit) for edit in edits)
    ast.fix_missing_locations(tree)
    return Rewritten(before=before, after=compile(tree, file, "exec", dont_inherit=True), edited=edited)


def _edit(tree: ast.Module, edit: Edit) -> frozenset[Place]:
    named = [function for name, function in _functions(tree, "") if name == edit.function]
    if not named:
        raise Refusal(
            edit.text, "the file defines no such function (lambdas and comprehensions have no name)"
        )
    changed = _force(named, edit) if isinstance(edit, ForceBranch) else _overwrite(named, edit)
    return frozenset(Place(edit.function, _first_line(function)) for function in changed)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    """All of them by qualified name, wherever in a block they are defined."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
            yield from _functions(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def _first_line(function: Function) -> int:
    return min(node.lineno for node in (function, *function.decorator_list))


def _force(named: Sequence[Function], edit: ForceBranch) -> Sequence[Function]:
    found = [(function, test) for function in named for test in _tests(function) if _spans(test, edit.line)]
    found = [pair for pair in found if not isinstance(pair[1], ast.IfExp)] or found
    if len(found) != 1:
        count = f"are {len(found)} tests" if found else "is no if, while or conditional expression"
        raise Refusal(edit.text, f"on this line of the function there {count}")
    function, test = found[0]
    bound = [node.target.id for node in ast.walk(test.test) if isinstance(node, ast.NamedExpr)]
    if bound:
        raise Refusal(edit.text, f"the test also sets {', '.join(bound)}")
    if isinstance(test, ast.While) and edit.taken:
        raise Refusal(edit.text, "a loop that is always entered again may never end")
    test.test = _constant(test.test, edit.taken)
    return [function]


def _tests(function: Function) -> Iterator[Test]:
    """Those of the function itself, not of functions and classes within."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            yield node
        waiting += ast.iter_child_nodes(node)


def _spans(test: Test, line: int) -> bool:
    first = test.test.lineno if isinstance(test, ast.IfExp) else test.lineno
    return first <= line <= (test.test.end_lineno or first)


def _constant(test: ast.expr, taken: bool) -> ast.expr:
    """Never evaluates the test, yet keeps its names, without which a closure would lose its variables."""
    constant = ast.copy_location(ast.Constant(taken), test)
    operator = ast.Or() if taken else ast.And()
    return ast.copy_location(ast.BoolOp(operator, [constant, test]), test)


def _overwrite(named: Sequence[Function], edit: SetArgument) -> Sequence[Function]:
    having = [function for function in named if edit.name in _parameters(function)]
    if not having:
        known = dict.fromkeys(name for function in named for name in _parameters(function))
        raise Refusal(edit.text, f"its parameters are {', '.join(known) or 'none'}")
    for function in having:
        body = function.body
        start = 1 if ast.get_docstring(function, clean=False) is not None else 0
        target = ast.Name(edit.name, ast.Store())
        assignment = ast.Assign([target], ast.Constant(edit.value))
        body.insert(start, ast.copy_location(assignment, body[0]))
    return having


def _parameters(function: Function) -> tuple[str, ...]:
    declared = function.args
    return tuple(each.arg for each in (*declared.posonlyargs, *declared.args, *declared.kwonlyargs))
