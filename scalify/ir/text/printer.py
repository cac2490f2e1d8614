"""Graph -> text."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from scalify.ir.graph import Attr, Graph, Node, NodeId, Site
from scalify.ir.mesh import RankInt
from scalify.ir.text.tokens import BARE_NODE, BARE_WORD


def to_text(graph: Graph) -> str:
    """The whole text."""
    return "".join(f"{line}\n" for line in print_lines(graph))


def save(graph: Graph, path: Path) -> None:
    """Write the text to a file, which is either whole or not there."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in print_lines(graph))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def print_lines(graph: Graph) -> Iterator[str]:
    """The text, line by line, without line ends."""
    yield "scalify graph 1"
    yield f"name {json.dumps(graph.name)}"
    if graph.mesh.axes:
        yield "mesh " + " ".join(f"{json.dumps(name)}={size}" for name, size in graph.mesh.axes)
    if graph.unrolled:
        yield f"unrolled {graph.unrolled}"
    for note in graph.notes:
        yield f"note {json.dumps(note)}"
    places = _Places()
    for node in graph.nodes:
        suffix = places.suffix(node)
        yield from places.take_lines()
        yield _node(node) + suffix
    for output in graph.outputs:
        alias = "" if output.alias is None else f" alias {json.dumps(output.alias)}"
        yield f"output {json.dumps(output.name)} = {_id(output.value)}{alias}"


class _Places:
    """Numbers sites and stacks as they occur, and keeps the lines that say so until they are printed."""

    def __init__(self) -> None:
        self._sites: dict[Site, int] = {}
        self._stacks: dict[tuple[Site, ...], int] = {}
        self._lines: list[str] = []

    def suffix(self, node: Node) -> str:
        site = "" if node.site is None else f" @{self._site(node.site)}"
        stack = f" via {self._stack(node.stack)}" if node.stack else ""
        scope = f" in {json.dumps(node.scope)}" if node.scope else ""
        return site + stack + scope

    def take_lines(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def _site(self, site: Site) -> int:
        if site not in self._sites:
            self._sites[site] = len(self._sites)
            where = f"{json.dumps(site.file)} {site.line} {json.dumps(site.function)}"
            self._lines.append(f"site {self._sites[site]} = {where}")
        return self._sites[site]

    def _stack(self, stack: tuple[Site, ...]) -> int:
        if stack not in self._stacks:
            frames = " ".join(str(self._site(site)) for site in stack)
            self._stacks[stack] = len(self._stacks)
            self._lines.append(f"stack {self._stacks[stack]} = {frames}")
        return self._stacks[stack]


def _node(node: Node) -> str:
    operands = ", ".join(map(_id, node.operands))
    attrs = ", ".join(f"{_name(name)} = {_value(value)}" for name, value in node.attrs.items())
    braces = f" {{{attrs}}}" if attrs else ""
    shape = ",".join(map(str, node.type.shape))
    return f"{_id(node.id)} = {_name(node.op)}({operands}){braces} : {node.type.dtype}[{shape}]"


def _id(node_id: NodeId) -> str:
    return f"%{node_id if BARE_NODE.fullmatch(node_id) else json.dumps(node_id)}"


def _name(name: str) -> str:
    return name if BARE_WORD.fullmatch(name) else json.dumps(name)


def _value(value: Attr) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value)
        case RankInt():
            terms = "".join(f" + {factor}*digit({stride}, {size})" for stride, size, factor in value.terms)
            return f"<{value.base}{terms}>"
        case tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return repr(value)
