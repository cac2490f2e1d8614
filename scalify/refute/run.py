"""Both programs on the same values: the candidate's inputs follow from the baseline's by the relations.

Two kinds of nodes have no meaning of their own. Memory that was never written may hold anything: it gets
values of its own, of the candidate's as one of the witness' free inputs. Results of unknown operations and of
random draws are not known: what depends on them is not compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from scalify.ir.evaluate import PerRank, Seen, evaluate
from scalify.ir.graph import Graph, Node, NodeId, TensorType
from scalify.ir.ops.spec import Array
from scalify.refute.domain import domains, met
from scalify.refute.draw import Input, drawn
from scalify.refute.place import on_ranks
from scalify.relate.model import Relations
from scalify.verdict import Domain, Draw

UNWRITTEN = frozenset(
    {"uninitialised", "empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}
)
"""What memory that was never written to is called, whatever stands before and behind."""

Given = Mapping[str, PerRank]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How a program is run: ``seen`` watches its nodes, ``garbage`` numbers what unwritten memory holds."""

    seen: Seen | None = None
    garbage: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two programs with what is assumed of their inputs, and what is known of the baseline's."""

    baseline: Graph
    candidate: Graph
    relations: Relations
    domains: Mapping[NodeId, Domain] = field(default_factory=lambda: MappingProxyType({}))

    def inputs(self) -> tuple[Input, ...]:
        """What the baseline is given."""
        return tuple(
            Input(
                name=str(node.attrs["name"]),
                type=node.type,
                role=str(node.attrs.get("role", "input")),
                domain=self.domains.get(node.id, Domain()),
            )
            for node in self.baseline.inputs()
        )

    def given(self, draw: Draw) -> tuple[Given, Given]:
        """The inputs of both programs, by name, one array per rank."""
        ranks = self.baseline.mesh.size
        by_node: dict[NodeId, Array] = {}
        own: dict[str, PerRank] = {}
        for node, given in zip(self.baseline.inputs(), self.inputs(), strict=True):
            if ranks == 1:
                own[given.name] = [drawn(draw, given)]
            else:
                own[given.name] = [drawn(draw, given, copy=rank) for rank in range(ranks)]
            by_node[node.id] = np.stack(own[given.name]) if ranks > 1 else own[given.name][0][None]
        placed = on_ranks(self.relations.inputs, by_node)
        return own, {
            str(node.attrs["name"]): self._placed(draw, node, placed) for node in self.candidate.inputs()
        }

    def _placed(self, draw: Draw, node: Node, placed: Mapping[NodeId, PerRank]) -> PerRank:
        if node.id in placed:
            return placed[node.id]
        free = Input(
            name=f"candidate: {node.attrs['name']}",
            type=node.type,
            role=str(node.attrs.get("role", "input")),
            domain=domains(self.candidate)[node.id],
        )
        return [drawn(draw, free, copy=rank) for rank in range(self.candidate.mesh.size)]


def pair_of(baseline: Graph, candidate: Graph, relations: Relations) -> Pair:
    """Both programs, with the domains of the baseline's inputs: what either program does with them counts."""
    found = dict(domains(baseline))
    others = domains(candidate)
    for relation in relations.inputs:
        for part in relation.parts:
            known, other = found[part.baseline], others[relation.candidate]
            # Shards of a table are shorter than it: the range is the baseline's to say.
            size = known.size if known.size is not None else other.size
            found[part.baseline] = replace(met(known, other), size=size)
    return Pair(baseline=baseline, candidate=candidate, relations=relations, domains=found)


def run(graph: Graph, given: Given, draw: Draw, ways: Ways | None = None) -> dict[str, PerRank]:
    """The outputs of one program by name, one array per rank."""
    ways = ways or Ways()
    stand_in = _stand_in(graph, draw, ways.garbage)
    return evaluate(graph, given, stand_in=stand_in, seen=ways.seen)


def is_unwritten(node: Node) -> bool:
    """Whether a node is memory that nobody has written to."""
    if node.op != "opaque":
        return False
    return not UNWRITTEN.isdisjoint(str(node.attrs["target"]).replace(":", ".").split("."))


def unknown_outputs(graph: Graph) -> frozenset[str]:
    """Outputs that depend on random draws or on operations without a meaning."""
    tainted: set[NodeId] = set()
    for node in graph.nodes:
        unknown = node.op in ("opaque", "random") and not is_unwritten(node)
        if unknown or any(operand in tainted for operand in node.operands):
            tainted.add(node.id)
    return frozenset(output.name for output in graph.outputs if output.value in tainted)


def unwritten(graph: Graph) -> tuple[str, ...]:
    """The memory that a program reads without anybody having written to it."""
    return tuple(f"memory never written: {node.id}" for node in graph.nodes if is_unwritten(node))


def _stand_in(graph: Graph, draw: Draw, garbage: int) -> Callable[[Node, Sequence[PerRank]], PerRank]:
    def stand_in(node: Node, operands: Sequence[PerRank]) -> PerRank:
        del operands
        return [_anything(draw, node, node.type, rank, garbage) for rank in range(graph.mesh.size)]

    return stand_in


def _anything(draw: Draw, node: Node, type: TensorType, rank: int, garbage: int) -> Array:
    given = Input(name=f"memory: {node.id}/{garbage}", type=type, role="input", domain=Domain())
    return drawn(draw, given, copy=rank)
