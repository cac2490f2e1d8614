"""Text -> graph, of text that anybody may have written."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, cast

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.ir.check import MAX_DIMENSIONS, MAX_NODES, check
from scalify.ir.graph import Attr, DType, Graph, Node, NodeId, Output, Site, TensorType
from scalify.ir.mesh import SINGLE, Mesh, RankInt
from scalify.ir.ops.attributes import MAX_TERMS
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.text.tokens import MAX_LINE_CHARS, Cursor, malformed

MAX_BYTES = 1 << 30
MAX_AXES = 16
MAX_DEPTH = 4
MAX_NOTES = 1024
# What a line gave a number, for later lines to refer to: a site or a stack.
Numbered = TypeVar("Numbered")

HEADER = "scalify graph"
VERSION = 1


def load(path: Path) -> Graph:
    """Read a file and check the graph in it."""
    if not path.is_file():
        raise UnsupportedFormat(f"there is no file {path}", hint="give the path of a graph in text form")
    if path.stat().st_size > MAX_BYTES:
        raise InvalidGraph(f"{path} has more than {MAX_BYTES} bytes", hint="verify it in parts")
    graph = _Parser().parse(_lines(path))
    check(graph)
    return graph


def parse(text: str) -> Graph:
    """The graph that a text states. It may be ill-formed: ``check`` says."""
    return _Parser().parse(text.split("\n"))


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE_CHARS + 1):
            number += 1
            try:
                yield raw.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise malformed(number, "it is not UTF-8 text") from None


class _Parser:
    """What the lines read so far have said."""

    def __init__(self) -> None:
        self._name = ""
        self._mesh = SINGLE
        self._unrolled = 0
        self._notes: list[str] = []
        self._sites: list[Site] = []
        self._stacks: list[tuple[Site, ...]] = []
        self._nodes: list[Node] = []
        self._outputs: list[Output] = []
        self._statements: Mapping[str, Callable[[Cursor], None]] = {
            "name": self._read_name,
            "mesh": self._read_mesh,
            "unrolled": self._read_unrolled,
            "note": self._read_note,
            "site": self._read_site,
            "stack": self._read_stack,
            "output": self._read_output,
        }

    def parse(self, lines: Iterable[str]) -> Graph:
        numbered = enumerate(lines, start=1)
        _check_header(next(numbered, (1, ""))[1])
        for number, line in numbered:
            if len(line) > MAX_LINE_CHARS:
                raise malformed(number, f"it has more than {MAX_LINE_CHARS} characters")
            if line:
                self._read(Cursor(line, number))
        return Graph(
            name=self._name,
            nodes=tuple(self._nodes),
            outputs=tuple(self._outputs),
            mesh=self._mesh,
            unrolled=self._unrolled,
            notes=tuple(self._notes),
        )

    def _read(self, cursor: Cursor) -> None:
        if cursor.kind == "word" and cursor.text in self._statements:
            self._statements[cursor.name()](cursor)
        else:
            self._read_node(cursor)
        cursor.end()

    def _read_name(self, cursor: Cursor) -> None:
        self._name = cursor.string()

    def _read_mesh(self, cursor: Cursor) -> None:
        axes: list[tuple[str, int]] = []
        while cursor.kind != "end":
            name = cursor.string()
            cursor.expect("=")
            axes.append((name, cursor.integer()))
            if len(axes) > MAX_AXES:
                raise malformed(cursor.line, f"a mesh of more than {MAX_AXES} axes")
        try:
            self._mesh = Mesh(axes=tuple(axes))
        except ValueError as error:
            raise malformed(cursor.line, str(error)) from None

    def _read_unrolled(self, cursor: Cursor) -> None:
        self._unrolled = cursor.integer()

    def _read_note(self, cursor: Cursor) -> None:
        if len(self._notes) >= MAX_NOTES:
            raise malformed(cursor.line, f"there are more than {MAX_NOTES} notes")
        self._notes.append(cursor.string())

    def _read_site(self, cursor: Cursor) -> None:
        _expect_number(cursor, len(self._sites))
        self._sites.append(Site(cursor.string(), cursor.integer(), cursor.string()))

    def _read_stack(self, cursor: Cursor) -> None:
        _expect_number(cursor, len(self._stacks))
        frames: list[Site] = []
        while cursor.kind != "end":
            frames.append(_numbered(cursor, self._sites, "site"))
        self._stacks.append(tuple(frames))

    def _read_output(self, cursor: Cursor) -> None:
        name = cursor.string()
        cursor.expect("=")
        value = NodeId(cursor.node())
        alias = cursor.string() if cursor.take_if("alias") else None
        self._outputs.append(Output(name=name, value=value, alias=alias))

    def _read_node(self, cursor: Cursor) -> None:
        if len(self._nodes) >= MAX_NODES:
            raise malformed(cursor.line, f"there are more than {MAX_NODES} nodes")
        node_id = NodeId(cursor.node())
        cursor.expect("=")
        self._nodes.append(
            Node(
                id=node_id,
                op=cursor.name(),
                operands=_operands(cursor),
                attrs=_attrs(cursor),
                type=_type(cursor),
                site=_numbered(cursor, self._sites, "site") if cursor.take_if("@") else None,
                stack=_numbered(cursor, self._stacks, "stack") if cursor.take_if("via") else (),
                scope=cursor.string() if cursor.take_if("in") else "",
            )
        )


def _check_header(line: str) -> None:
    if not line.startswith(f"{HEADER} "):
        raise UnsupportedFormat(
            "this is no graph in text form", hint=f"its first line would be '{HEADER} {VERSION}'"
        )
    if line != f"{HEADER} {VERSION}":
        raise UnsupportedFormat(
            f"{line[:40]!r}: this release reads version {VERSION}", hint="write the graph with this release"
        )


def _expect_number(cursor: Cursor, number: int) -> None:
    if cursor.integer() != number:
        raise malformed(cursor.line, f"number {number} is due")
    cursor.expect("=")


def _numbered(cursor: Cursor, known: list[Numbered], what: str) -> Numbered:
    number = cursor.integer()
    if not 0 <= number < len(known):
        raise malformed(cursor.line, f"there is no {what} {number} above")
    return known[number]


def _operands(cursor: Cursor) -> tuple[NodeId, ...]:
    cursor.expect("(")
    operands: list[NodeId] = []
    while not cursor.take_if(")"):
        if operands:
            cursor.expect(",")
        operands.append(NodeId(cursor.node()))
    return tuple(operands)


def _attrs(cursor: Cursor) -> Mapping[str, Attr]:
    attrs: dict[str, Attr] = {}
    if not cursor.take_if("{"):
        return MappingProxyType(attrs)
    while not cursor.take_if("}"):
        if attrs:
            cursor.expect(",")
        name = cursor.name()
        if name in attrs:
            raise malformed(cursor.line, f"attribute {name!r} is stated twice")
        cursor.expect("=")
        attrs[name] = _value(cursor, MAX_DEPTH)
    return MappingProxyType(attrs)


def _value(cursor: Cursor, depth: int) -> Attr:
    if cursor.kind == "number":
        return cursor.number()
    if cursor.kind == "string":
        return cursor.string()
    if cursor.take_if("true"):
        return True
    if cursor.take_if("false"):
        return False
    if cursor.take_if("<"):
        return _rank_int(cursor)
    if cursor.take_if("["):
        return _tuple(cursor, depth)
    raise cursor.fail("a value")


def _tuple(cursor: Cursor, depth: int) -> tuple[Attr, ...]:
    if not depth:
        raise malformed(cursor.line, f"brackets are nested more than {MAX_DEPTH} deep")
    items: list[Attr] = []
    while not cursor.take_if("]"):
        if items:
            cursor.expect(",")
        items.append(_value(cursor, depth - 1))
    return tuple(items)


def _rank_int(cursor: Cursor) -> RankInt:
    base = cursor.integer()
    terms: list[tuple[int, int, int]] = []
    while cursor.take_if("+"):
        factor = cursor.integer()
        for text in ("*", "digit", "("):
            cursor.expect(text)
        stride = cursor.integer()
        cursor.expect(",")
        terms.append((stride, cursor.integer(), factor))
        cursor.expect(")")
        if len(terms) > MAX_TERMS:
            raise malformed(cursor.line, f"an integer of more than {MAX_TERMS} terms")
    cursor.expect(">")
    try:
        return RankInt(base=base, terms=tuple(terms))
    except ValueError as error:
        raise malformed(cursor.line, str(error)) from None


def _type(cursor: Cursor) -> TensorType:
    cursor.expect(":")
    if cursor.text not in KIND_OF:
        raise cursor.fail("a dtype")
    dtype = cast(DType, cursor.name())
    cursor.expect("[")
    shape: list[int] = []
    while not cursor.take_if("]"):
        if shape:
            cursor.expect(",")
        shape.append(cursor.integer())
        if len(shape) > MAX_DIMENSIONS:
            raise malformed(cursor.line, f"more than {MAX_DIMENSIONS} dimensions")
    return TensorType(dtype, tuple(shape))
