"""What a graph holds, for people and for programs."""

import sys
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from scalify.ir.graph import Graph, Node, TensorType
from scalify.ir.text import print_lines
from scalify.report.codec import document, plain
from scalify.report.grouping import grouped
from scalify.report.page import Page, Styled, page_for, show
from scalify.report.result import Axis, axes_of
from scalify.report.text import mesh_text

SCHEMA = "scalify.contents"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An input or an output. ``role`` is that of an input, or empty."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ops:
    """How many nodes have one op. ``has_meaning`` is False where nothing is known of it."""

    op: str
    count: int
    has_meaning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """A graph in short. Shapes are those on one rank."""

    name: str
    nodes: int
    mesh: tuple[Axis, ...]
    ops: tuple[Ops, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    with_site: int


def contents_of(graph: Graph) -> Contents:
    """The graph in short."""
    types = {node.id: node.type for node in graph.nodes}
    ops = Counter(_op(node) for node in graph.nodes)
    return Contents(
        name=graph.name,
        nodes=len(graph.nodes),
        mesh=axes_of(graph),
        ops=tuple(Ops(op=name, count=count, has_meaning=known) for (name, known), count in ops.most_common()),
        inputs=tuple(_input(node) for node in graph.inputs()),
        outputs=tuple(_value(output.name, types[output.value]) for output in graph.outputs),
        with_site=sum(node.site is not None for node in graph.nodes),
    )


def _op(node: Node) -> tuple[str, bool]:
    return (str(node.attrs.get("target", "opaque")), False) if node.op == "opaque" else (node.op, True)


def _input(node: Node) -> Value:
    return _value(str(node.attrs["name"]), node.type, str(node.attrs["role"]))


def _value(name: str, type_: TensorType, role: str = "") -> Value:
    return Value(name=name, dtype=type_.dtype, shape=type_.shape, role=role)


def print_whole(graph: Graph) -> None:
    """The text form, which reads back."""
    for line in print_lines(graph):
        sys.stdout.write(line + "\n")


def print_contents(contents: Contents, format: Literal["text", "json"]) -> None:
    """To standard output."""
    if format == "json":
        body = {"schema": SCHEMA, "version": VERSION, **plain(contents)}
        sys.stdout.write(document(body, indent=2) + "\n")
    else:
        page = page_for(sys.stdout)
        _add_contents(page, contents)
        show(page)


def _add_contents(page: Page, contents: Contents) -> None:
    page.line(Styled(contents.name or "(no name)", "bold"))
    page.fact("nodes", f"{contents.nodes:,}, {contents.with_site:,} of them with a line of source")
    page.fact("ranks", mesh_text(contents.mesh))
    page.fact("ops", _ops_text(contents, has_meaning=True))
    unknown = _ops_text(contents, has_meaning=False)
    if unknown:
        page.fact("no meaning", Styled(unknown, "doubt"))
    _add_values(page, "Inputs", contents.inputs)
    _add_values(page, "Outputs", contents.outputs)


def _ops_text(contents: Contents, *, has_meaning: bool) -> str:
    return ", ".join(f"{each.count:,} {each.op}" for each in contents.ops if each.has_meaning == has_meaning)


def _add_values(page: Page, title: str, values: tuple[Value, ...]) -> None:
    page.heading(title)
    for group in grouped(values, lambda value: value.name, lambda value: f"{_type_text(value)} {value.role}"):
        times = f"{len(group.items):,} " if len(group.items) > 1 else ""
        role = f" ({group.first.role})" if group.first.role else ""
        page.entry(f"{times}{group.name}: {_type_text(group.first)}{role}")
    if not values:
        page.line("none", first="  ")


def _type_text(value: Value) -> str:
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
