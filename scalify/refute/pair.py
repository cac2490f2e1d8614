"""Two programs with what is assumed of their inputs, and the values that both get.

Inputs are made when a program first needs them: of a large model, one weight is held at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.ops.spec import Array
from scalify.refute.domain import domains, met
from scalify.refute.draw import Input, drawn, drawn_at
from scalify.refute.place import Window, numbers_in, numbers_read, on_ranks, slices
from scalify.relate.model import InputRelation, Relations
from scalify.verdict import Domain, Draw

Given = Mapping[str, PerRank]
Piece = Callable[[str, int, Window], Array]
"""Of an input by name, on a rank: a part of it."""


class Made(Mapping[str, PerRank]):
    """Values by name, each made again whenever it is asked for; ``piece`` makes a part of one on one rank."""

    def __init__(self, names: Sequence[str], make: Callable[[str], PerRank], piece: Piece) -> None:
        self._names = dict.fromkeys(names)
        self._make = make
        self.piece = piece

    def __getitem__(self, name: str) -> PerRank:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """``domains`` are those of the baseline's inputs; of the candidate's, those that are ``free``."""

    baseline: Graph
    candidate: Graph
    relations: Relations
    domains: Mapping[NodeId, Domain] = field(default_factory=lambda: MappingProxyType({}))
    free: Mapping[NodeId, Domain] = field(default_factory=lambda: MappingProxyType({}))

    def inputs(self) -> tuple[Input, ...]:
        """What the baseline is given."""
        return tuple(
            input_of(node, str(node.attrs["name"]), self.domains.get(node.id, Domain()))
            for node in self.baseline.inputs()
        )

    def given(self, draw: Draw) -> tuple[Made, Made]:
        """The inputs of both programs, by name, one array per rank."""
        ranks = self.baseline.mesh.size
        inputs = {each.name: each for each in self.inputs()}
        names = {node.id: str(node.attrs["name"]) for node in self.baseline.inputs()}
        relations = {each.candidate: each for each in self.relations.inputs}
        own = {str(node.attrs["name"]): node for node in self.candidate.inputs()}

        def baseline(name: str) -> PerRank:
            if ranks == 1:
                return [drawn(draw, inputs[name])]
            return [drawn(draw, inputs[name], copy=rank) for rank in range(ranks)]

        def candidate(name: str) -> PerRank:
            relation = relations.get(own[name].id)
            if relation is None:
                return self._free(draw, own[name])
            needed = dict.fromkeys(part.baseline for part in relation.parts)
            return _placed(relation, {each: np.stack(baseline(names[each])) for each in needed})

        def baseline_piece(name: str, rank: int, window: Window) -> Array:
            numbers = numbers_in(inputs[name].type.shape, window)
            return drawn_at(draw, inputs[name], numbers, copy=rank if ranks > 1 else 0)

        def candidate_piece(name: str, rank: int, window: Window) -> Array:
            relation = relations.get(own[name].id)
            if relation is None or ranks > 1 or len(relation.parts) != 1:
                return candidate(name)[rank][slices(own[name].type.shape, window)]
            part = relation.parts[0]
            numbers = numbers_read(part.index, rank, window)
            return drawn_at(draw, inputs[names[part.baseline]], numbers)

        return Made(tuple(inputs), baseline, baseline_piece), Made(tuple(own), candidate, candidate_piece)

    def _free(self, draw: Draw, node: Node) -> PerRank:
        free = input_of(node, f"candidate: {node.attrs['name']}", self.free.get(node.id, Domain()))
        return [drawn(draw, free, copy=rank) for rank in range(self.candidate.mesh.size)]


def pair_of(baseline: Graph, candidate: Graph, relations: Relations) -> Pair:
    """Both programs, with the domains of the baseline's inputs: what either program does with them counts."""
    found = dict(domains(baseline))
    others = dict(domains(candidate))
    for relation in relations.inputs:
        own = others.pop(relation.candidate)
        for part in relation.parts:
            known = found[part.baseline]
            # Shards of a table are shorter than it: the range is the baseline's to say.
            size = known.size if known.size is not None else own.size
            found[part.baseline] = replace(met(known, own), size=size)
    return Pair(baseline=baseline, candidate=candidate, relations=relations, domains=found, free=others)


def input_of(node: Node, name: str, domain: Domain) -> Input:
    """A node of op ``input`` as what is to be filled."""
    return Input(name=name, type=node.type, role=str(node.attrs.get("role", "input")), domain=domain)


def _placed(relation: InputRelation, values: Mapping[NodeId, Array]) -> PerRank:
    return on_ranks((relation,), values)[relation.candidate]
