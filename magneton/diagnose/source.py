"""The syntax tree of a function that a profile names. Files are read as text, and nothing is executed."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import cast

from magneton.profile.model import Frame

MOST_BYTES = 4 << 20  # of one file
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
ScopeNode = FunctionNode | ast.ClassDef
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A function in its file. ``enclosing``: the module first, then classes and functions around it."""

    file: str  # as the profile has it
    node: FunctionNode
    enclosing: tuple[ScopeNode, ...]
    lines: tuple[str, ...]

    @property
    def module(self) -> ast.Module:
        outermost = (*self.enclosing, self.node)[0]
        return cast("ast.Module", outermost)

    def code(self, node: ast.expr | ast.stmt) -> str:
        """The line on which ``node`` begins."""
        return self.lines[node.lineno - 1].strip() if node.lineno <= len(self.lines) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parsed:
    tree: ast.Module
    lines: tuple[str, ...]


class Sources:
    """Finds functions in files below ``roots``, the folders modules were imported from; reads a file once."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)
        self._parsed: dict[str, _Parsed | Unavailable] = {}

    def locate(self, frame: Frame) -> Located | Unavailable:
        if frame.file not in self._parsed:
            self._parsed[frame.file] = self._parse(frame.file)
        parsed = self._parsed[frame.file]
        if isinstance(parsed, Unavailable):
            return parsed
        # The text is compared first: a profile from elsewhere must not make us tell of files it has not seen.
        there = parsed.lines[frame.line - 1].strip() if 0 < frame.line <= len(parsed.lines) else None
        if there != frame.code.strip():
            return Unavailable(reason=f"{frame.file} has changed since")
        scopes = _find(parsed.tree, frame)
        if scopes is None:
            return Unavailable(reason=f"{frame.file} has no {frame.function} on line {frame.line}")
        node = scopes[-1]
        if isinstance(node, ast.ClassDef):
            return Unavailable(reason=f"{frame.function} in {frame.file} is the body of a class")
        return Located(file=frame.file, node=node, enclosing=scopes[:-1], lines=parsed.lines)

    def _parse(self, file: str) -> _Parsed | Unavailable:
        if file.startswith("<"):
            return Unavailable(reason=f"{file} is generated code")
        path = next((path for path in self._paths(file) if path.is_file()), None)
        if path is None:
            return Unavailable(reason=f"{file} is not here")
        if path.stat().st_size > MOST_BYTES:
            return Unavailable(reason=f"{file} is too large to be read")
        try:
            text = path.read_text(encoding="utf-8")
            return _Parsed(tree=ast.parse(text), lines=tuple(text.split("\n")))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return Unavailable(reason=f"{file} cannot be read: {type(error).__name__}")

    def _paths(self, file: str) -> Iterator[Path]:
        pure = PurePath(file)
        if pure.suffix != ".py" or ".." in pure.parts or "\0" in file:
            return
        yield from (root / pure for root in self._roots)


def _find(tree: ast.Module, frame: Frame) -> tuple[ScopeNode, ...] | None:
    """The scopes from the module to the function; of several of one name the innermost around the line."""
    wanted = [part for part in frame.function.split(".") if part != "<locals>"]
    while wanted and wanted[-1] in _COMPREHENSIONS:  # a frame of its own until Python 3.12
        wanted.pop()
    if wanted in ([], ["<module>"]):
        return (tree,)
    found: tuple[ScopeNode, ...] | None = None
    stack: list[tuple[ast.AST, tuple[ScopeNode, ...], int]] = [(tree, (tree,), 0)]
    while stack:
        node, scopes, matched = stack.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
                stack.append((child, scopes, matched))
            elif matched < len(wanted) and _name(child) == wanted[matched] and spans(child, frame.line):
                inner = (*scopes, child)
                if matched + 1 == len(wanted):
                    found = inner if found is None or _size(child) <= _size(found[-1]) else found
                stack.append((child, inner, matched + 1))
    return found


def _name(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def spans(node: ast.AST, line: int) -> bool:
    """Whether ``node`` has a part on ``line``; decorators belong to what they decorate."""
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is None or last is None:
        return False
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([first, *(each.lineno for each in decorators)]) <= line <= last


def _size(node: ScopeNode) -> int:
    return 0 if isinstance(node, ast.Module) else (node.end_lineno or node.lineno) - node.lineno
