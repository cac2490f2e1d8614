"""Which test sends one side here and the other there, and which expressions in it decide?

In: a function's syntax tree and what was reached on either side. Out: the innermost test that one side passed
and the other did not need to; for one line that calls different functions, the expression that is called.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from magneton.diagnose.source import FunctionNode, spans

Kind = Literal[
    "dispatch",
    "if",
    "early exit",
    "while",
    "for",
    "match",
    "ternary",
    "boolean operator",
    "comprehension",
]
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_INNER = (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.BinOp, ast.IfExp, ast.NamedExpr, ast.Await)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """``deciding``: names, attributes, calls and subscripts of the test, in its order."""

    kind: Kind
    line: int
    test: ast.expr
    deciding: tuple[ast.expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What is in ``branch`` of ``node`` runs or not as ``tests`` come out."""

    kind: Kind
    node: ast.AST
    branch: str
    tests: tuple[ast.expr, ...]


_Step = tuple[ast.AST, str, int]  # a node, the field in which the path goes on, and where in its list


def separating(function: FunctionNode, baseline_line: int, candidate_line: int) -> Condition | None:
    """The innermost test between two lines of ``function``; None: whoever reaches one reaches the other."""
    paths = _path(function, baseline_line), _path(function, candidate_line)
    return _separating(*paths)


def dispatching(
    function: FunctionNode, line: int, baseline_callee: str, candidate_callee: str
) -> Condition | None:
    """What decides which function ``line`` calls. Callees are qualified names, "" for none of Python's."""
    calls = [call for call in _own(function) if isinstance(call, ast.Call) and _is_on(call, line)]
    named = [_called(calls, callee) for callee in (baseline_callee, candidate_callee)]
    if any(call is not None for call in named) and named[0] is not named[1]:
        paths = [[] if call is None else _path_to(function, call) for call in named]
        paths = [path or _path(function, line)[:1] for path in paths]
        between = _separating(*paths)
        if between is not None:
            return between
    open_calls = [call for call in calls if call not in named] or calls
    if not open_calls:
        return None
    callee = min(open_calls, key=lambda call: (call.lineno != line, call.col_offset, -_end(call))).func
    kind: Kind = "ternary" if isinstance(callee, ast.IfExp) else "dispatch"
    test = callee.test if isinstance(callee, ast.IfExp) else callee
    return _condition(kind, (test,))


def deciding(test: ast.expr) -> tuple[ast.expr, ...]:
    """The operands of a test that are no constants, in their order."""
    found: list[ast.expr] = []
    stack: list[ast.expr] = [test]
    while stack:
        node = stack.pop()
        if isinstance(node, _INNER):
            children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            stack.extend(reversed(children[1:] if isinstance(node, ast.NamedExpr) else children))
        elif not isinstance(node, ast.Constant):
            found.append(node)
    return tuple(found)


def guards(function: FunctionNode, node: ast.AST) -> tuple[Guard, ...]:
    """The tests within ``function`` that ``node`` lies behind, outermost first."""
    return tuple(_guards(_path_to(function, node)))


def _separating(baseline: Sequence[_Step], candidate: Sequence[_Step]) -> Condition | None:
    shared = 0
    while shared < min(len(baseline), len(candidate)) and baseline[shared] == candidate[shared]:
        shared += 1
    behind = [list(_guards(path[shared:])) for path in (baseline, candidate)]
    # Of a test both sides came to, what it decided is where they part; further in lies what happened after.
    forks = [guard for side in behind for guard in side[:1] if _is_fork(guard, baseline, candidate)]
    innermost = [side[-1] for side in behind if side]
    chosen = next(iter((*forks, *innermost)), None)
    if chosen is None:
        return _early_exit(baseline, candidate, shared)
    exits = isinstance(chosen.node, ast.If) and isinstance(chosen.node.body[-1], _EXITS)
    only_one = len(innermost) == 1
    return _condition("early exit" if exits and only_one else chosen.kind, chosen.tests)


def _is_fork(guard: Guard, baseline: Sequence[_Step], candidate: Sequence[_Step]) -> bool:
    return all(any(step[0] is guard.node for step in path) for path in (baseline, candidate))


def _early_exit(baseline: Sequence[_Step], candidate: Sequence[_Step], shared: int) -> Condition | None:
    """A test between two statements of one block that may leave it."""
    if shared >= min(len(baseline), len(candidate)):
        return None
    (block, name, one), (_, other_name, other) = baseline[shared], candidate[shared]
    statements = getattr(block, name, None)
    if name != other_name or not isinstance(statements, list):
        return None
    between: list[ast.AST] = statements[min(one, other) : max(one, other)]  # pyright: ignore[reportUnknownVariableType]  # a field of any node
    for statement in reversed(between):
        if isinstance(statement, ast.If) and isinstance((statement.body)[-1], _EXITS):
            return _condition("early exit", (statement.test,))
    return None


def _condition(kind: Kind, tests: tuple[ast.expr, ...]) -> Condition:
    deciders = tuple(each for test in tests for each in deciding(test))
    return Condition(kind=kind, line=tests[0].lineno, test=tests[0], deciding=deciders)


def _guards(path: Iterable[_Step]) -> Iterator[Guard]:
    for node, branch, place in path:
        kind, tests = _tests(node, branch, place)
        if kind is not None and tests:
            yield Guard(
                kind=kind, node=node, branch=f"{branch} {place}" if kind == "match" else branch, tests=tests
            )


def _tests(node: ast.AST, branch: str, place: int) -> tuple[Kind | None, tuple[ast.expr, ...]]:
    match node:
        case ast.If() if branch != "test":
            return "if", (node.test,)
        case ast.While() if branch != "test":
            return "while", (node.test,)
        case ast.For() | ast.AsyncFor() if branch != "iter":
            return "for", (node.iter,)
        case ast.IfExp() if branch != "test":
            return "ternary", (node.test,)
        case ast.BoolOp() if place > 0:
            return "boolean operator", tuple(node.values[:place])
        case ast.Match() if branch == "cases":
            case_guard = node.cases[place].guard
            return "match", (node.subject,) if case_guard is None else (node.subject, case_guard)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp() if branch != "generators":
            return "comprehension", tuple(test for each in node.generators for test in each.ifs)
        case _:
            return None, ()


def _path(function: FunctionNode, line: int) -> list[_Step]:
    """From ``function`` to the innermost statement or expression on ``line``."""
    path: list[_Step] = []
    node: ast.AST = function
    while True:
        inner = next((step for step in _children(node) if spans(step[1], line)), None)
        if inner is None:
            return path
        (step, node) = inner
        path.append(step)


def _path_to(function: FunctionNode, target: ast.AST) -> list[_Step]:
    stack: list[tuple[ast.AST, list[_Step]]] = [(function, [])]
    while stack:
        node, path = stack.pop()
        if node is target:
            return path
        stack.extend((child, [*path, step]) for step, child in _children(node) if _covers(child, target))
    return []


def _covers(node: ast.AST, target: ast.AST) -> bool:
    """Whether ``target`` can lie within: not all nodes (arguments, cases) know their lines."""
    line = getattr(target, "lineno", None)
    return line is None or not hasattr(node, "lineno") or spans(node, line)


def _children(node: ast.AST) -> Iterator[tuple[_Step, ast.AST]]:
    for name, value in ast.iter_fields(node):
        children: list[object] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]  # a field of any node
        for place, child in enumerate(children):
            if isinstance(child, ast.match_case):
                yield from (((node, name, place), inner) for inner in child.body)
            elif isinstance(child, ast.AST):
                yield (node, name, place), child


def _own(function: FunctionNode) -> Iterator[ast.AST]:
    """What runs in ``function`` itself, not in functions it defines."""
    stack: list[ast.AST] = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))


def _is_on(call: ast.Call, line: int) -> bool:
    """Python reports a call on the line where it begins, or where the name of its method stands."""
    return line in (call.lineno, call.func.end_lineno)


def _called(calls: Sequence[ast.Call], callee: str) -> ast.Call | None:
    names = callee.split(".")[-1:]
    return next((call for call in calls if [_last_name(call.func)] == names), None)


def _last_name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _end(node: ast.expr) -> int:
    return node.end_col_offset or 0
