"""Where a candidate computes in coarser formats than the baseline does, read off both programs.

In: two programs that are, or may be, equal over the reals, and which nodes stand for each other. Out: events,
in the order of the candidate. A value is judged as it is read: the coarsest format it has been through since
it was computed, beside that of its counterpart. So a cast may stand before or after any movement of data, and
a product may be rounded by itself or by the cast behind it. What adds up many numbers is judged by its own
format too, for there each step may round: sums over ranks, means, softmax, normalisations.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from scalify.ir.graph import DType, Graph, Node, NodeId
from scalify.precision.counterparts import Counterparts
from scalify.precision.finding import Kind
from scalify.precision.formats import is_rounding, loses
from scalify.precision.through import COMBINING, Rounding, Way, Ways, keeps, ways
from scalify.relate.model import OutputRelation

STATISTICS = frozenset(
    {"softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm", "group_norm", "batch_norm"}
    | {"cross_entropy", "attention", "cumsum", "cumprod"}
)
NORMS = frozenset({"layer_norm", "rms_norm", "group_norm"})
ADDED_UP = frozenset({"sum", "avg", "mean", "prod"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``node`` is where precision is lost, ``given`` its place in the baseline, ``reader`` who reads it."""

    kind: Kind
    node: NodeId
    given: NodeId | None
    expected: DType
    found: DType
    reader: NodeId | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """A program, and how each of its values came to be."""

    graph: Graph
    nodes: Mapping[NodeId, Node]
    ways: Mapping[NodeId, Ways]

    @classmethod
    def of(cls, graph: Graph) -> "Side":
        """With everything that is asked of it."""
        return cls(graph, graph.by_id(), ways(graph))

    def dtype(self, value: NodeId) -> DType:
        """The format in which a node's result is held."""
        return self.nodes[value].type.dtype


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides, and what stands for what."""

    baseline: Side
    candidate: Side
    aligned: Counterparts

    def events(self, outputs: tuple[OutputRelation, ...]) -> Iterator[Event]:
        """All of them; the same loss is told once for each that reads it."""
        for node in self.candidate.graph.nodes:
            given = self.baseline.nodes.get(self.aligned.of.get(node.id, NodeId("")))
            if given is None or keeps(node, self.candidate.nodes):
                continue
            if _adds_up_ranks(node):
                yield from self._sum_over_ranks(node, given)
            elif node.id not in self.aligned.inherited:
                yield from self._statistics(node, given)
                yield from self._as_read(node, given)
        yield from self._mixed_norms()
        yield from self._results(outputs)

    def _sum_over_ranks(self, node: Node, given: Node) -> Iterator[Event]:
        terms = self.candidate.ways[node.operands[0]].by_source
        for source in self._computed(given.id):
            of_ranks = _adds_up_ranks(self.baseline.nodes[source])
            if not of_ranks and not any(self._is_certain(term, source) for term in terms):
                continue
            expected = self.baseline.dtype(source)
            if loses(node.type.dtype, expected):
                yield Event(
                    kind=Kind.RANKS_SUM, node=node.id, given=source, expected=expected, found=node.type.dtype
                )
                return
            for way in self.candidate.ways[node.operands[0]].by_source.values():
                lost = _first_loss(way, expected)
                if lost is not None and self._stands_for(way.source, source):
                    yield Event(
                        kind=Kind.ROUNDED_TERMS,
                        node=lost.node,
                        given=source,
                        expected=expected,
                        found=lost.dtype,
                        reader=node.id,
                    )

    def _statistics(self, node: Node, given: Node) -> Iterator[Event]:
        is_sum = node.op == "reduce" and node.attrs["kind"] in ADDED_UP
        if not (is_sum or node.op in STATISTICS) or given.op != node.op:
            return
        if loses(node.type.dtype, given.type.dtype):
            yield Event(
                kind=Kind.STATISTICS,
                node=node.id,
                given=given.id,
                expected=given.type.dtype,
                found=node.type.dtype,
            )

    def _as_read(self, node: Node, given: Node) -> Iterator[Event]:
        same = node.op == given.op and len(node.operands) == len(given.operands)
        for place, operand in enumerate(node.operands):
            beside = given.operands[place] if same else None
            for way in self.candidate.ways[operand].by_source.values():
                expected = self._counterpart_way(way, given, beside)
                if expected is not None:
                    yield from self._lost(way, expected, node.id)

    def _counterpart_way(self, way: Way, given: Node, beside: NodeId | None) -> Way | None:
        """How the counterpart of a reader reads the counterpart of a value, at the same place if it does."""
        if beside is not None and _adds_up_ranks(self.candidate.nodes[way.source]):
            return self.baseline.ways[beside].coarsest()
        for operand in (*(() if beside is None else (beside,)), *given.operands):
            for other in self.baseline.ways[operand].by_source.values():
                if self._stands_for(way.source, other.source):
                    return other
        return None

    def _lost(self, way: Way, expected: Way, reader: NodeId | None) -> Iterator[Event]:
        wanted = expected.coarsest
        if wanted is None:
            return
        lost = _first_loss(way, wanted)
        if lost is not None:
            event = Event(
                kind=Kind.ROUNDED,
                node=lost.node,
                given=expected.source,
                expected=wanted,
                found=lost.dtype,
                reader=reader,
            )
            yield replace(event, kind=self._kind_of(event))
            return
        twice = _rounded_between(way, expected)
        if twice is not None:
            yield Event(
                kind=Kind.ROUNDED_TWICE,
                node=twice.node,
                given=expected.roundings[-1].node,
                expected=wanted,
                found=twice.dtype,
                reader=reader,
            )

    def _kind_of(self, event: Event) -> Kind:
        node = self.candidate.nodes[event.node]
        if _adds_up_ranks(node):
            return Kind.RANKS_SUM
        return Kind.HELD if node.op == "input" else Kind.ROUNDED

    def _mixed_norms(self) -> Iterator[Event]:
        known = {_mixture(self.baseline, node) for node in self.baseline.graph.nodes if node.op in NORMS}
        for node in self.candidate.graph.nodes:
            mixture = _mixture(self.candidate, node) if node.op in NORMS else None
            if mixture is None or mixture in known:
                continue
            _, activation, weight = mixture
            yield Event(
                kind=Kind.MIXED_NORM,
                node=node.id,
                given=self.aligned.of.get(node.id),
                expected=weight,
                found=activation,
            )

    def _results(self, outputs: tuple[OutputRelation, ...]) -> Iterator[Event]:
        given = {output.name: output.value for output in self.baseline.graph.outputs}
        own = {output.name: output.value for output in self.candidate.graph.outputs}
        for relation in outputs:
            if relation.baseline not in given or relation.candidate not in own:
                continue
            expected = self.baseline.ways[given[relation.baseline]].coarsest()
            way = self.candidate.ways[own[relation.candidate]].coarsest()
            if expected is not None and way is not None:
                yield from self._lost(way, expected, None)
                yield from self._handed_out(way, expected, self.baseline.dtype(given[relation.baseline]))

    def _handed_out(self, way: Way, expected: Way, dtype: DType) -> Iterator[Event]:
        """A sum over ranks in a coarser format than that in which both programs hand out its result: the cast
        that the baseline has behind the value belongs before the sum."""
        node, given = self.candidate.nodes[way.source], self.baseline.nodes[expected.source]
        if _adds_up_ranks(node) and not _adds_up_ranks(given) and loses(node.type.dtype, dtype):
            yield Event(
                kind=Kind.RANKS_SUM, node=node.id, given=given.id, expected=dtype, found=node.type.dtype
            )

    def _is_certain(self, value: NodeId, given: NodeId) -> bool:
        """Whether a node stands for another beyond doubt: by its source, or by all that it computes with."""
        if not self._stands_for(value, given):
            return False
        others = {
            source
            for operand in self.baseline.nodes[given].operands
            for source in self.baseline.ways[operand].by_source
        }
        own = [
            source
            for operand in self.candidate.nodes[value].operands
            for source in self.candidate.ways[operand].by_source
        ]
        return value in self.aligned.sure or all(
            any(self._stands_for(source, other) for other in others) for source in own
        )

    def _computed(self, value: NodeId) -> tuple[NodeId, ...]:
        return tuple(self.baseline.ways[value].by_source)

    def _stands_for(self, value: NodeId, given: NodeId) -> bool:
        counterpart = self.aligned.of.get(value)
        return counterpart is not None and (
            counterpart == given or given in self.baseline.ways[counterpart].by_source
        )


def _adds_up_ranks(node: Node) -> bool:
    return node.op in COMBINING and node.attrs["kind"] in ADDED_UP


def _first_loss(way: Way, expected: DType) -> Rounding | None:
    return next((each for each in way.roundings if loses(each.dtype, expected)), None)


def _rounded_between(way: Way, expected: Way) -> Rounding | None:
    """A rounding on the way to the last one that the baseline does without."""
    known = {each.dtype for each in expected.roundings}
    first = expected.roundings[0].dtype
    between = (each for each in way.roundings[:-1] if each.dtype not in known and loses(each.dtype, first))
    return next(between, None)


def _mixture(side: Side, node: Node) -> tuple[str, DType, DType] | None:
    """Activation and weight of a fused normalisation, where their formats differ."""
    dtypes: list[DType] = [side.dtype(operand) for operand in node.operands]
    for other in dtypes[1:]:
        if is_rounding(other) and other != dtypes[0]:
            return node.op, dtypes[0], other
    return None
