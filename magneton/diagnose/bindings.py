"""What may a name stand for in a function? Its definitions, its parameters, and what calls give to them."""

import ast
from collections.abc import Iterator
from itertools import chain

from magneton.diagnose.conditions import guards
from magneton.diagnose.source import FunctionNode, Located, ScopeNode, spans

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Import = ast.Import | ast.ImportFrom
_SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)


def definitions(scope: ScopeNode, name: str) -> tuple[ast.expr, ...]:
    """All that ``scope`` itself binds to ``name``, which may be ``self.x``, in the order of lines."""
    found = (value for node in _own(scope) for target, value in _bindings(node) if text(target) == name)
    return tuple(sorted(found, key=lambda value: (value.lineno, value.col_offset)))


def reaching(function: FunctionNode, name: str, use: ast.expr) -> tuple[ast.expr, ...]:
    """Definitions of ``name`` that may hold at ``use``: not those that a later one always replaces.

    Where only later lines define it, as in a loop or an inner function, all of these count.
    """
    every = definitions(function, name)
    before = [value for value in every if (value.lineno, value.col_offset) < (use.lineno, use.col_offset)]
    around = [(id(guard.node), guard.branch) for guard in guards(function, use)]
    kept: list[ast.expr] = []
    for value in before:
        places = [(id(guard.node), guard.branch) for guard in guards(function, value)]
        if places == around[: len(places)] and not _is_augmented(function, value):
            kept = []
        kept.append(value)
    return tuple(kept) or every


def parameters(scope: ScopeNode) -> tuple[str, ...]:
    if isinstance(scope, ast.ClassDef | ast.Module):
        return ()
    given = scope.args
    stars = [star for star in (given.vararg, given.kwarg) if star is not None]
    return tuple(each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *stars))


def default_of(function: FunctionNode, name: str) -> ast.expr | None:
    if isinstance(function, ast.Module):
        return None
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    with_default = positional[len(positional) - len(given.defaults) :]
    pairs = chain(
        zip(with_default, given.defaults, strict=True), zip(given.kwonlyargs, given.kw_defaults, strict=True)
    )
    return next((default for each, default in pairs if each.arg == name), None)


def bound(function: FunctionNode, call: ast.Call, name: str, *, is_method: bool) -> ast.expr | None:
    """What ``call`` gives to the parameter ``name`` of ``function``; None: nothing that can be told."""
    keyword = next((each.value for each in call.keywords if each.arg == name), None)
    if keyword is not None or isinstance(function, ast.Module):
        return keyword
    positional = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    place = positional.index(name) - is_method if name in positional else -1
    if is_method and place == -1 and isinstance(call.func, ast.Attribute):
        return call.func.value if name in positional else None
    if not 0 <= place < len(call.args) or any(
        isinstance(each, ast.Starred) for each in call.args[: place + 1]
    ):
        return None
    return call.args[place]


def is_method(located: Located) -> bool:
    """Whether calls leave out the first parameter."""
    node = located.node
    within_class = bool(located.enclosing) and isinstance(located.enclosing[-1], ast.ClassDef)
    decorators = node.decorator_list if isinstance(node, FUNCTIONS) else []
    return within_class and not any(text(each) == "staticmethod" for each in decorators)


def call_on(function: FunctionNode, line: int, callee: FunctionNode) -> ast.Call | None:
    """The call of ``callee`` on a line: by its name if that is there, else the first that spans the line."""
    calls = [node for node in _own(function) if isinstance(node, ast.Call) and spans(node, line)]
    name = callee.name if isinstance(callee, FUNCTIONS) else ""
    named = [call for call in calls if text(call.func).split(".")[-1] == name]
    starting = [call for call in calls if line in (call.lineno, call.func.end_lineno)]
    return min(named or starting or calls, key=lambda call: (call.lineno, call.col_offset), default=None)


def callee_of(located: Located, called: ast.expr) -> Located | None:
    """The function of the same file, or method of the same class, that an expression names."""
    path = (*located.enclosing, located.node)
    name = text(called)
    if name.startswith("self."):
        places = [each for each in reversed(path) if isinstance(each, ast.ClassDef)][:1]
        name = name.removeprefix("self.")
    else:
        places = [each for each in reversed(path) if not isinstance(each, ast.ClassDef)]
    for scope in places:
        node = next((each for each in _own(scope) if isinstance(each, FUNCTIONS) and each.name == name), None)
        if node is not None:
            around = path[: path.index(scope) + 1]
            return Located(file=located.file, node=node, enclosing=around, lines=located.lines)
    return None


def returned(function: FunctionNode) -> tuple[ast.expr, ...]:
    if isinstance(function, ast.Lambda):
        return (function.body,)
    return tuple(
        node.value for node in _own(function) if isinstance(node, ast.Return) and node.value is not None
    )


def imported(module: ScopeNode, name: str) -> str | None:
    """The dotted name behind ``name``, where the module, or a function in it, imports it."""
    for node in ast.walk(module):
        if isinstance(node, _Import):
            prefix = f"{'.' * node.level}{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if (alias.asname or alias.name.split(".")[0]) == name:
                    return prefix + (alias.name if prefix or alias.asname else name)
    return None


def defines_callable(module: ScopeNode, name: str) -> bool:
    return any(isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name for node in _own(module))


def text(node: ast.expr) -> str:
    """The source text of ``node`` on one line, cut where it is long."""
    try:
        written = ast.unparse(node)
    except RecursionError:
        return type(node).__name__
    return " ".join(written.split())[:120]


def _own(scope: ScopeNode) -> Iterator[ast.AST]:
    """What runs in ``scope`` itself; functions and classes it defines appear, and are not entered."""
    stack: list[ast.AST] = list(reversed(list(ast.iter_child_nodes(scope))))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs of a target and what it gets."""
    match node:
        case ast.Assign():
            for target in node.targets:
                yield from _unpacked(target, node.value)
        case ast.AnnAssign() if node.value is not None:
            yield node.target, node.value
        case ast.AugAssign():
            yield node.target, node.value
        case ast.NamedExpr():
            yield node.target, node.value
        case ast.For() | ast.AsyncFor():
            yield from _unpacked(node.target, node.iter)
        case ast.comprehension():
            yield from _unpacked(node.target, node.iter)
        case ast.withitem() if node.optional_vars is not None:
            yield from _unpacked(node.optional_vars, node.context_expr)
        case ast.Match():
            for case in node.cases:
                for part in ast.walk(case.pattern):
                    if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name is not None:
                        yield ast.Name(id=part.name), node.subject
        case _:
            pass


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    stack = [(target, value)]
    while stack:
        target, value = stack.pop()
        if isinstance(target, ast.Starred):
            stack.append((target.value, value))
        elif not isinstance(target, ast.Tuple | ast.List):
            yield target, value
        elif (
            isinstance(value, ast.Tuple | ast.List)
            and len(value.elts) == len(target.elts)
            and not any(isinstance(each, ast.Starred) for each in (*target.elts, *value.elts))
        ):
            stack.extend(zip(target.elts, value.elts, strict=True))
        else:
            stack.extend((each, value) for each in target.elts)


def _is_augmented(function: FunctionNode, value: ast.expr) -> bool:
    return any(isinstance(node, ast.AugAssign) and node.value is value for node in _own(function))
