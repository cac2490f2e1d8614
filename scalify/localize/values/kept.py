"""A program that was run, with the value of every node; and run on, with another value for one of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from zlib import crc32

import numpy as np

from scalify.errors import OutOfRange
from scalify.ir.evaluate import Inputs, PerRank, StandIn, evaluate
from scalify.ir.graph import Graph, Node, NodeId, Output
from scalify.ir.ops.meaning.storage import stored

ELEMENT_BYTES = 8

Outputs = Mapping[str, PerRank]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """``values`` holds what was computed; ``stopped_at`` is the node that reads beyond a table."""

    graph: Graph
    nodes: Mapping[NodeId, Node]
    values: Mapping[NodeId, PerRank]
    stopped_at: Node | None = None

    def outputs(self) -> Outputs:
        """The outputs that were computed."""
        return {
            output.name: self.values[output.value]
            for output in self.graph.outputs
            if output.value in self.values
        }

    def with_node(self, node: Node, only: str | None = None) -> Outputs | None:
        """The outputs that depend on a node, with another one of its type in its place."""
        outputs = self._wanted(only)
        return self._run_on((node, *_rest(self, {node.id}, outputs)), {}, outputs)

    def with_values(self, changed: Mapping[NodeId, PerRank], only: str | None = None) -> Outputs | None:
        """The outputs that depend on some nodes, with other values for these; None if that cannot be run.

        ``only`` one of them is looked at where it is named.
        """
        outputs = self._wanted(only)
        return self._run_on(_rest(self, changed.keys(), outputs), changed, outputs)

    def _wanted(self, only: str | None) -> tuple[Output, ...]:
        return tuple(output for output in self.graph.outputs if only in (None, output.name))

    def _run_on(
        self, rest: Sequence[Node], changed: Mapping[NodeId, PerRank], wanted: Sequence[Output]
    ) -> Outputs | None:
        ids = {each.id for each in rest}
        given = {operand for each in rest for operand in each.operands} - ids
        outputs = tuple(each for each in wanted if each.value in ids or each.value in changed)
        given |= {each.value for each in outputs} - ids
        values = {**self.values, **changed}
        if not given <= values.keys():
            return None
        inputs = tuple(_as_input(self.nodes[each]) for each in given)
        part = replace(self.graph, nodes=(*inputs, *rest), outputs=outputs)
        try:
            return evaluate(part, {str(each): values[each] for each in given}, stand_in=_anything(part))
        except OutOfRange:
            return None


def size_bytes(graph: Graph) -> int:
    """What all values of a graph take, if no two ranks share one."""
    return sum(prod(node.type.shape) for node in graph.nodes) * graph.mesh.size * ELEMENT_BYTES


def kept(graph: Graph, inputs: Inputs) -> Kept:
    """Run a program and keep everything."""
    values: dict[NodeId, PerRank] = {}

    def seen(node: Node, value: PerRank) -> PerRank:
        values[node.id] = value
        return value

    stopped_at = None
    try:
        evaluate(graph, inputs, stand_in=_anything(graph), seen=seen)
    except OutOfRange:
        stopped_at = next(node for node in graph.nodes if node.id not in values)
    return Kept(graph=graph, nodes=graph.by_id(), values=values, stopped_at=stopped_at)


def _anything(graph: Graph) -> StandIn:
    """For what nobody knows: memory that was never written, random draws, operations without a meaning."""

    def stand_in(node: Node, operands: Sequence[PerRank]) -> PerRank:
        del operands
        generator = np.random.default_rng(crc32(node.id.encode("utf-8", "replace")))
        values = (generator.uniform(0.5, 2.0, node.type.shape) for _ in range(graph.mesh.size))
        return [stored(value, node.type.dtype) for value in values]

    return stand_in


def _rest(kept: Kept, changed: Collection[NodeId], outputs: Sequence[Output]) -> tuple[Node, ...]:
    """What is to be run again: what an output needs, and depends on the changed nodes or was never run."""
    reached = set(changed)
    for each in kept.graph.nodes:
        if each.id not in kept.values or any(operand in reached for operand in each.operands):
            reached.add(each.id)
    needed = {output.value for output in outputs}
    found: list[Node] = []
    for each in reversed(kept.graph.nodes):
        if each.id in needed and each.id in reached and each.id not in changed:
            found.append(each)
            needed.update(each.operands)
    return tuple(reversed(found))


def _as_input(node: Node) -> Node:
    attrs = MappingProxyType({"name": str(node.id), "role": "input"})
    return replace(node, op="input", operands=(), attrs=attrs)
