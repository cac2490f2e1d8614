"""Where does a value come from? Back through assignments, callers and classes to what a user can set.

In: an expression, the function it stands in, and the frames that led there. Out: the sources on which it may
depend, those that can be set first. Nothing is executed: every definition that may reach is followed, with
the tests that it lies behind, so a source is a candidate. What is not known for sure is said in ``weaker``.
"""

import ast
import builtins
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from magneton.diagnose.bindings import (
    FUNCTIONS,
    callee_of,
    defines_callable,
    definitions,
    imported,
    parameters,
    reaching,
    returned,
    text,
)
from magneton.diagnose.callers import Scope, given_to
from magneton.diagnose.conditions import deciding, guards
from magneton.diagnose.source import FunctionNode, Located, Sources
from magneton.profile.model import Frame

Kind = Literal[
    "config field", "environment variable", "global flag", "argument", "default", "constant", "computed"
]
MOST_STEPS = 3000  # expressions followed
MOST_VIA = 12  # steps of one chain
_ORDER: tuple[Kind, ...] = (
    "config field", "environment variable", "global flag", "argument", "default", "constant", "computed",
)  # fmt: skip
_CONFIG = re.compile(r"(^|_)(config|cfg|conf|options|opts|settings|args|hparams|params)$")
_ENVIRONMENT = re.compile(r"^(os\.)?(getenv|environ\.get|environ\.pop|environ\.setdefault|environ)$")
_FLAG = re.compile(r"^torch\.(backends\.|_inductor\.config|_dynamo\.config|(get|is|are)_)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """``code`` is the line that reads it. ``value``: what was observed for ``name``; None: nothing was."""

    kind: Kind
    name: str
    file: str
    line: int
    code: str
    via: tuple[str, ...]  # from the expression asked about, step by step
    weaker: str = ""  # why this is less than certain, "; " between
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    node: ast.expr
    scope: Scope
    via: tuple[str, ...]
    weaker: tuple[str, ...]


def find_sources(
    expression: ast.expr,
    located: Located,
    callers: Sequence[Frame],
    sources: Sources,
    *,
    observed: Mapping[str, str] | None = None,
) -> tuple[Source, ...]:
    """What ``expression`` of ``located`` depends on. ``callers``: the frames outside it, outermost first."""
    search = _Search(sources)
    search.follow(expression, Scope(located=located, frames=tuple(callers)), (), ())
    found = sorted(search.run(), key=lambda source: _ORDER.index(source.kind))
    values = observed or {}
    return tuple(replace(source, value=values.get(source.name)) for source in found)


class _Search:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._queue: deque[_Task] = deque()
        # The nodes are kept too, for their identities must not be used again.
        self._seen: dict[tuple[int, int, int, str], tuple[ast.expr, ast.Call | None]] = {}
        self._found: dict[tuple[Kind, str, str, int], Source] = {}

    def run(self) -> tuple[Source, ...]:
        while self._queue and len(self._seen) < MOST_STEPS:
            self._step(self._queue.popleft())
        return tuple(self._found.values())

    def follow(
        self, node: ast.expr, scope: Scope, via: tuple[str, ...], weaker: tuple[str, ...], name: str = ""
    ) -> None:
        key = id(scope.located.node), id(scope.call), id(node), name
        if key in self._seen:
            return
        self._seen[key] = node, scope.call
        task = _Task(node=node, scope=scope, via=via, weaker=weaker)
        if len(via) > MOST_VIA:
            self._add(task, "computed", text(node), f"followed no further than {MOST_VIA} steps")
        else:
            self._queue.append(task)

    def _add(self, task: _Task, kind: Kind, name: str, *weaker: str) -> None:
        located = task.scope.located
        self._found.setdefault(
            (kind, name, located.file, task.node.lineno),
            Source(
                kind=kind,
                name=name,
                file=located.file,
                line=task.node.lineno,
                code=located.code(task.node),
                via=task.via,
                weaker="; ".join(note for note in dict.fromkeys((*task.weaker, *weaker)) if note),
            ),
        )

    def _step(self, task: _Task) -> None:
        node = task.node
        setting = _setting(node)
        if setting is not None:
            self._add(task, *setting)
        elif isinstance(node, ast.Constant):
            self._add(task, "constant", repr(node.value)[:80])
        elif isinstance(node, ast.Name):
            self._name(task, node.id)
        elif isinstance(node, ast.Attribute):
            self._attribute(task, node)
        elif isinstance(node, ast.Call):
            self._call(task, node)
        else:
            self._parts(task, ast.iter_child_nodes(node), literals=isinstance(node, ast.IfExp | ast.BoolOp))

    def _parts(self, task: _Task, parts: Iterator[ast.AST], *, literals: bool = False) -> None:
        """Literals next to something else, as in a comparison, are no sources of what comes out."""
        for part in parts:
            if isinstance(part, ast.expr) and (literals or not isinstance(part, ast.Constant)):
                self.follow(part, task.scope, task.via, task.weaker)
            elif isinstance(part, ast.comprehension | ast.keyword):
                self._parts(task, ast.iter_child_nodes(part))

    def _name(self, task: _Task, name: str) -> None:
        node = task.scope.located.node
        if isinstance(node, ast.Module):
            self._global(task, name)
            return
        values = reaching(node, name, task.node)
        for value in values:
            via = (*task.via, f"{name} = {text(value)}")
            self.follow(value, task.scope, via, task.weaker)
            self._tests(task, node, value, via, {id(guard.node) for guard in guards(node, task.node)})
        if name in parameters(node):
            if not values or all(guards(node, value) for value in values):
                self._parameter(task, name)
        elif not values:
            self._outside(task, name)

    def _tests(
        self, task: _Task, function: FunctionNode, value: ast.expr, via: tuple[str, ...], around: set[int]
    ) -> None:
        """What a definition lies behind decides as well, unless the use lies behind it too (``around``)."""
        for guard in guards(function, value):
            if id(guard.node) in around:
                continue
            for decider in (each for test in guard.tests for each in deciding(test)):
                step = f"{guard.kind} {text(guard.tests[0])}"
                self.follow(decider, task.scope, (*via, step), task.weaker)

    def _parameter(self, task: _Task, name: str) -> None:
        given = given_to(task.scope, name, self._sources)
        notes = (*task.weaker, *given.notes)
        if given.argument is not None and given.scope is not None:
            self.follow(given.argument, given.scope, (*task.via, *given.steps), notes)
            return
        shown = name if given.default is None else f"{name}={text(given.default)}"
        self._add(replace(task, weaker=notes), "default" if given.is_default else "argument", shown)

    def _outside(self, task: _Task, name: str) -> None:
        """A name of an enclosing function, of the module, or of Python."""
        located = task.scope.located
        for place in range(len(located.enclosing) - 1, 0, -1):
            around = located.enclosing[place]
            if isinstance(around, ast.ClassDef):
                continue
            if name in parameters(around) or definitions(around, name):
                outer = replace(located, node=around, enclosing=located.enclosing[:place])
                note = f"{name} is of the enclosing function, and may have changed between"
                via = (*task.via, f"{name} of the enclosing function")
                inner = ast.copy_location(ast.Name(id=name), located.node)
                self.follow(inner, Scope(located=outer), via, (*task.weaker, note), name)
                return
        self._global(task, name)

    def _global(self, task: _Task, name: str) -> None:
        located = task.scope.located
        module = located.module
        values = definitions(module, name)
        outer = Scope(located=replace(located, node=module, enclosing=()))
        settings = [value for value in values if any(_setting(part) for part in ast.walk(value))]
        for value in settings:
            self.follow(value, outer, (*task.via, f"{name} = {text(value)}"), task.weaker)
        origin = imported(module, name)
        if values and not settings:
            self._add(replace(task, node=values[-1], scope=outer), "global flag", name)
        elif origin is not None:
            flag = name.isupper()
            self._add(
                task, "global flag" if flag else "computed", origin, "" if flag else "defined in another file"
            )
        elif not values and not hasattr(builtins, name):
            self._add(task, "constant" if defines_callable(module, name) else "computed", name)

    def _attribute(self, task: _Task, node: ast.Attribute) -> None:
        dotted = _dotted(node)
        root, _, rest = dotted.partition(".")
        located = task.scope.located
        module = located.module
        origin = imported(module, root)
        around = next((each for each in reversed(located.enclosing) if isinstance(each, ast.ClassDef)), None)
        if root in ("self", "cls") and around is not None and rest:
            self._own_attribute(task, around, rest.split(".")[0], dotted)
        elif origin is not None and (node.attr.isupper() or "flags" in origin.split(".")):
            self._add(task, "global flag", f"{origin}.{rest}")
        elif origin is None:
            self.follow(
                node.value, task.scope, (*task.via, f".{node.attr} of {text(node.value)}"), task.weaker
            )

    def _own_attribute(self, task: _Task, around: ast.ClassDef, attribute: str, dotted: str) -> None:
        """What the class itself assigns, in any method or its body."""
        found = False
        enclosing = task.scope.located.enclosing
        outside = enclosing[: enclosing.index(around) + 1]
        for method in (each for each in around.body if isinstance(each, FUNCTIONS)):
            scope = Scope(located=replace(task.scope.located, node=method, enclosing=outside))
            for value in definitions(method, f"self.{attribute}"):
                found = True
                via = (*task.via, f"self.{attribute} = {text(value)} in {around.name}.{method.name}")
                self.follow(value, scope, via, task.weaker)
                self._tests(replace(task, scope=scope), method, value, via, set())
        if found:
            return
        for value in definitions(around, attribute):
            found = True
            self.follow(
                value, task.scope, (*task.via, f"{around.name}.{attribute} = {text(value)}"), task.weaker
            )
        if not found:
            self._add(task, "computed", dotted, f"{around.name} does not set {attribute} itself")

    def _call(self, task: _Task, node: ast.Call) -> None:
        """A function of this file is entered; of any other, what it is called on and with is followed."""
        callee = callee_of(task.scope.located, node.func)
        if callee is not None:
            inner = Scope(located=callee, call=node, caller=task.scope)
            notes = task.weaker
            if isinstance(callee.node, FUNCTIONS) and callee.node.decorator_list:
                notes = (*notes, f"{callee.node.name} is decorated, which may change what it returns")
            for value in returned(callee.node):
                via = (*task.via, f"{text(node.func)} returns {text(value)}")
                self.follow(value, inner, via, notes)
                self._tests(replace(task, scope=inner), callee.node, value, via, set())
            return
        if isinstance(node.func, ast.Attribute):
            self.follow(node.func.value, task.scope, task.via, task.weaker)
        elif not isinstance(node.func, ast.Name):
            self.follow(node.func, task.scope, task.via, task.weaker)
        self._parts(task, iter((*node.args, *node.keywords)))


def _setting(node: ast.AST) -> tuple[Kind, str] | None:
    """What a user can set, as far as the expression itself tells."""
    if isinstance(node, ast.Call):
        called = _dotted(node.func)
        if _ENVIRONMENT.match(called) and node.args:
            return "environment variable", _literal(node.args[0])
        if called == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            held = f"{_dotted(node.args[0])}.{node.args[1].value}"
            return ("config field", held) if _is_config(held) else None
        return ("global flag", called) if _FLAG.match(called) else None
    if isinstance(node, ast.Subscript):
        if _ENVIRONMENT.match(_dotted(node.value)):
            return "environment variable", _literal(node.slice)
        is_key = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        held = f"{_dotted(node.value)}.{_literal(node.slice)}"
        return ("config field", text(node)) if is_key and _is_config(held) else None
    if isinstance(node, ast.Attribute):
        dotted = _dotted(node)
        if _FLAG.match(dotted):
            return "global flag", dotted
        return ("config field", dotted) if _is_config(dotted) else None
    return None


def _is_config(dotted: str) -> bool:
    holders = dotted.split(".")[:-1]
    return bool(holders) and all(holders) and any(_CONFIG.search(holder) for holder in holders)


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


def _literal(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else text(node)
