"""Who gave a parameter its value? A call that was followed into its function, else the frame next outside."""

import ast
from dataclasses import dataclass

from magneton.diagnose.bindings import FUNCTIONS, bound, call_on, default_of, is_method, text
from magneton.diagnose.source import FunctionNode, Located, Sources, Unavailable
from magneton.profile.model import Frame

MOST_HANDS = 12  # callers through which ``**kwargs`` are followed


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A function, with how it was called: by ``call`` in ``caller``, or by the last of ``frames``."""

    located: Located
    frames: tuple[Frame, ...] = ()  # outermost first, its own left out
    call: ast.Call | None = None
    caller: "Scope | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """``argument`` stands in ``scope``. None: nothing tells the value, but ``default`` may be it."""

    argument: ast.expr | None = None
    scope: Scope | None = None
    steps: tuple[str, ...] = ()
    default: ast.expr | None = None
    is_default: bool = False  # surely
    notes: tuple[str, ...] = ()


def given_to(scope: Scope, name: str, sources: Sources) -> Given:
    """What the caller of ``scope`` gave to its parameter ``name``."""
    function, notes = scope.located.node, _doubts(scope.located.node)
    called = _caller(scope, sources)
    default = default_of(function, name)
    if isinstance(called, str):
        return Given(default=default, notes=(*notes, called) if called else notes)
    call, caller = called
    argument = bound(function, call, name, is_method=is_method(scope.located))
    if argument is not None:
        return Given(argument=argument, scope=caller, steps=(_step(name, argument, caller),), notes=notes)
    through = _handed_on(call, caller, name, sources)
    if through is not None:
        argument, outer, steps = through
        return Given(argument=argument, scope=outer, steps=steps, notes=notes)
    if any(each.arg is None for each in call.keywords) or any(
        isinstance(each, ast.Starred) for each in call.args
    ):
        note = f"{text(call.func)} is called with * or **, which may hold {name}"
        return Given(default=default, notes=(*notes, note))
    return Given(default=default, is_default=default is not None, notes=notes)


def _doubts(function: FunctionNode) -> tuple[str, ...]:
    notes: list[str] = []
    if isinstance(function, FUNCTIONS) and function.decorator_list:
        notes.append(f"{function.name} is decorated, which may change its arguments")
    if isinstance(function, ast.AsyncFunctionDef):
        notes.append(f"{function.name} is async: its caller may be further out")
    return tuple(notes)


def _caller(scope: Scope, sources: Sources) -> tuple[ast.Call, Scope] | str:
    """The call and where it stands, or why it is not known; "" where nothing is further out."""
    if scope.call is not None and scope.caller is not None:
        return scope.call, scope.caller
    if not scope.frames:
        return ""
    frame = scope.frames[-1]
    located = sources.locate(frame)
    if isinstance(located, Unavailable):
        return f"the caller is not known: {located.reason}"
    call = call_on(located.node, frame.line, scope.located.node)
    if call is None:
        return f"the caller is not known: line {frame.line} of {frame.file} has no call"
    return call, Scope(located=located, frames=scope.frames[:-1])


def _handed_on(
    call: ast.Call, scope: Scope, name: str, sources: Sources
) -> tuple[ast.expr, Scope, tuple[str, ...]] | None:
    """What reached ``call`` in the ``**kwargs`` of ``scope``, from the caller that names it."""
    steps: list[str] = []
    for _ in range(MOST_HANDS):
        stars = next((each.value for each in call.keywords if each.arg is None), None)
        function = scope.located.node
        if not isinstance(stars, ast.Name) or isinstance(function, ast.Module):
            return None
        called = _caller(scope, sources)
        if function.args.kwarg is None or function.args.kwarg.arg != stars.id or isinstance(called, str):
            return None
        steps.append(f"{name} in **{stars.id} ({scope.located.file}:{call.lineno})")
        call, scope = called
        argument = next((each.value for each in call.keywords if each.arg == name), None)
        if argument is not None:
            return argument, scope, (*steps, _step(name, argument, scope))
    return None


def _step(name: str, argument: ast.expr, scope: Scope) -> str:
    return f"{name} <- {text(argument)} ({scope.located.file}:{argument.lineno})"
