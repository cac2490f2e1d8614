"""Meanings of unknown operations, given by the user: as graphs, or as reference functions.

In: a graph with ``opaque`` nodes, and for some of their targets a graph that computes the same from the same
operands (its inputs, in order), or something that makes one for every use. Out: the graph with these nodes
written out. A definition is a graph like any other, captured from a function or read from a file; nothing is
run here. What a proof then says holds if the definitions are right: each one that was used is an assumption.

An operation with several results is several nodes, ``target``, ``target#1`` and so on; a definition has a
result for each. ``target[eps=1e-05]`` defines it for these attributes only.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from scalify.errors import InvalidGraph, ScalifyError
from scalify.ir.check import check, place
from scalify.ir.graph import Graph, Node, NodeId, TensorType
from scalify.ir.ops.dtypes import KIND_OF

MOST_NODES = 2_000_000


class Reference(Protocol):
    """Reference functions by the operations that they define."""

    def text(self, target: str) -> str | None:
        """What an assumption calls the definition of a target; None where there is none."""
        ...

    def graph(self, target: str, number: int, node: Node, operands: tuple[TensorType, ...]) -> Graph:
        """What its result ``number`` is at one use. ScalifyError says why it does not fit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Defined:
    """A graph with operations written out, how many by which definition, and why others were not."""

    graph: Graph
    used: Mapping[str, int]
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    refused: tuple[str, ...] = ()

    def assumptions(self) -> tuple[str, ...]:
        """What has to be right, in words."""
        return tuple(
            f"{target} is what {self.texts.get(target, 'its definition computes')} ({count} times)"
            for target, count in self.used.items()
        )


def define(
    graph: Graph, definitions: Mapping[str, Sequence[Graph]], reference: Reference | None = None
) -> Defined:
    """Write out every opaque node of a defined target whose operands have the definition's shapes.

    A target may have several definitions, for other shapes or attributes; of those that fit, the first is
    taken, and graphs before functions.
    """
    for target, graphs in definitions.items():
        for one in graphs:
            _check_definition(target, one)
    return _Definition(graph, definitions, reference).run()


class _Definition:
    """One graph whose operations are written out."""

    def __init__(
        self, graph: Graph, definitions: Mapping[str, Sequence[Graph]], reference: Reference | None
    ) -> None:
        self._graph = graph
        self._definitions = [(*_conditions(name), graphs) for name, graphs in definitions.items()]
        self._reference = reference
        self._types = {node.id: node.type for node in graph.nodes}
        self._used: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._refused: dict[str, None] = {}

    def run(self) -> Defined:
        nodes: list[Node] = []
        for node in self._graph.nodes:
            made = self._written(node) if node.op == "opaque" else None
            nodes.extend((node,) if made is None else made)
            if len(nodes) > MOST_NODES:
                raise InvalidGraph("definitions unfold beyond measure", hint="define fewer operations")
        refused = tuple(self._refused)
        if not self._used:
            return Defined(graph=self._graph, used={}, refused=refused)
        written = replace(self._graph, nodes=tuple(nodes))
        check(written)
        return Defined(graph=written, used=self._used, texts=self._texts, refused=refused)

    def _written(self, node: Node) -> list[Node] | None:
        target = str(node.attrs["target"])
        name, number = _result_of(target)
        for defined, conditions, graphs in self._definitions:
            if defined not in (target, name) or not _holds(conditions, node):
                continue
            result = number if defined == name else 0
            for graph in graphs:
                if result < len(graph.outputs) and _misfit(graph, result, node, self._types) is None:
                    return self._take(target, node, graph, result)
        return self._by_reference(target, name, number, node)

    def _by_reference(self, target: str, name: str, number: int, node: Node) -> list[Node] | None:
        text = None if self._reference is None else self._reference.text(name)
        if text is None or self._reference is None:
            return None
        operands = tuple(self._types[operand] for operand in node.operands)
        try:
            graph = self._reference.graph(name, number, node, operands)
            reason = _unsuitable(graph) or _misfit(graph, 0, node, self._types)
        except ScalifyError as error:
            reason = str(error)
        else:
            if reason is None:
                self._texts[target] = text
                return self._take(target, node, graph, 0)
        self._refused[f"the definition of {target} does not fit {place(node)}: {reason}"] = None
        return None

    def _take(self, target: str, node: Node, definition: Graph, number: int) -> list[Node]:
        self._used[target] = self._used.get(target, 0) + 1
        return _written_out(node, definition, number, self._types)


def _conditions(name: str) -> tuple[str, Mapping[str, object]]:
    """``op[eps=1e-05,dim=4]`` as the operation and the attributes that it has to have."""
    target, bracket, rest = name.partition("[")
    if not bracket:
        return name, {}
    wanted: dict[str, object] = {}
    for part in rest.removesuffix("]").split(","):
        attribute, equals, value = part.partition("=")
        if not equals or not rest.endswith("]"):
            raise InvalidGraph(
                f"{name!r} names no attributes", hint="write OP[NAME=VALUE,...]=GRAPH, as in norm[eps=1e-05]"
            )
        wanted[attribute.strip()] = _read(value.strip())
    return target, wanted


def _read(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return value


def attributes_of(node: Node) -> Mapping[str, object] | None:
    """The attributes of an opaque node by name, with ``{"tensor": n}`` for operand n; None where its loader
    has written something else."""
    text = str(node.attrs.get("config", ""))
    try:
        value: object = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return None
    return {str(name): entry for name, entry in value.items()} if isinstance(value, dict) else None


def _holds(conditions: Mapping[str, object], node: Node) -> bool:
    if not conditions:
        return True
    attributes = attributes_of(node)
    return attributes is not None and all(
        name in attributes and attributes[name] == value for name, value in conditions.items()
    )


def _result_of(target: str) -> tuple[str, int]:
    """``op#2`` is result 2 of ``op``."""
    name, mark, number = target.rpartition("#")
    return (name, int(number)) if mark and number.isdecimal() and len(number) < 6 else (target, 0)


def _check_definition(target: str, graph: Graph) -> None:
    reason = _unsuitable(graph)
    if reason is not None:
        raise InvalidGraph(
            f"the definition of {target} {reason}",
            hint="define an operation by a graph of one rank, with a result for each of its own",
        )


def _unsuitable(graph: Graph) -> str | None:
    """What keeps a graph from being a definition."""
    if graph.mesh.size != 1 or graph.unrolled:
        return f"runs on {max(graph.mesh.size, graph.unrolled)} ranks"
    if not graph.outputs:
        return "has no result"
    if any(node.op == "random" for node in graph.nodes):
        return "draws random numbers: every use would draw the same"
    return None


def _misfit(definition: Graph, number: int, node: Node, types: Mapping[NodeId, TensorType]) -> str | None:
    """How operands or result differ in shape from the definition's, or in what operands are: whole numbers,
    truths, or real ones."""
    results = {own.id: own.type for own in definition.nodes}
    wanted = [own.type for own in definition.inputs()]
    given = [types[operand] for operand in node.operands]
    if [_form(one) for one in wanted] != [_form(one) for one in given]:
        return f"it takes {_shown(wanted)}, the operation is given {_shown(given)}"
    made = results[definition.outputs[number].value]
    if made.shape != node.type.shape:
        return f"it gives {_shown([made])}, the operation gives {_shown([node.type])}"
    return None


def _form(one: TensorType) -> tuple[tuple[int, ...], str]:
    return one.shape, KIND_OF[one.dtype]


def _shown(types: Sequence[TensorType]) -> str:
    return ", ".join(f"{one.dtype}[{','.join(map(str, one.shape))}]" for one in types) or "nothing"


def _written_out(
    node: Node, definition: Graph, number: int, types: Mapping[NodeId, TensorType]
) -> list[Node]:
    """The definition's nodes in the place of one node; the last one has its name, type and readers.

    What it defines is an operation of its own dtypes: operands of others are read in these.
    """
    names: dict[NodeId, NodeId] = {}
    written: list[Node] = []
    for own, operand in zip(definition.inputs(), node.operands, strict=True):
        names[own.id] = operand
        if types[operand].dtype != own.type.dtype:
            names[own.id] = NodeId(f"{node.id}:{own.id}")
            cast = replace(node, id=names[own.id], op="cast", operands=(operand,), attrs={}, type=own.type)
            written.append(cast)
    for own in definition.nodes:
        if own.op == "input":
            continue
        names[own.id] = NodeId(f"{node.id}:{own.id}")
        operands = tuple(names[operand] for operand in own.operands)
        around = {"site": node.site, "stack": node.stack, "scope": node.scope}
        written.append(replace(own, id=names[own.id], operands=operands, **around))
    result = names[definition.outputs[number].value]
    written.append(replace(node, op="cast", operands=(result,), attrs={}))
    return written
