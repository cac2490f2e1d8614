"""Whether look-ups read rows that exist: a proof takes that for granted, and values say where it is not so.

In: a pair that was proved. Out: the same verdict, with what was taken for granted and on how many kinds of
values it was tried; or Refuted, where the candidate reads beyond a table although the baseline does not. Only
what indices depend on is run, which in most programs is little.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Graph, Node, NodeId, Output
from scalify.ir.look_ups import indices
from scalify.localize.explain import place_of
from scalify.refute.budget import Search
from scalify.refute.draw import FAMILIES
from scalify.refute.lead import affordable
from scalify.refute.pair import Pair, pair_of
from scalify.refute.refute import witness
from scalify.refute.run import run
from scalify.refute.search import differing
from scalify.refute.unknown import unknown_nodes
from scalify.relate.model import Relations
from scalify.verdict import Draw, Proved, Reason, Refuted, Suspect, Unknown, Verdict

SEEDS = 2


@dataclass(frozen=True, slots=True)
class LookUp:
    """A node that reads or writes where ``index`` says, among ``size`` rows."""

    node: Node
    index: NodeId
    size: int


def reached(
    baseline: Graph, candidate: Graph, relations: Relations, verdict: Proved, budget: Search
) -> Verdict:
    """What is proved if look-ups are in range, with that looked at."""
    own = look_ups(candidate)
    if not own or candidate.unrolled:
        return _assuming(verdict, len(own), 0)
    pair = pair_of(baseline, candidate, relations)
    given = look_ups(baseline)
    parts = replace(pair, baseline=cone(baseline, given), candidate=cone(candidate, own))
    if not affordable(parts, budget):
        return _assuming(verdict, len(own), 0)
    tried = 0
    for draw in (Draw(family=family, seed=seed) for seed in range(SEEDS) for family in FAMILIES):
        values, own_values = pair.given(draw)
        if _beyond(given, run(parts.baseline, values, draw)) is not None:
            continue
        tried += 1
        found = _beyond(own, run(parts.candidate, own_values, draw))
        if found is not None:
            return _refuted(pair, verdict, draw, found, budget)
    return _assuming(verdict, len(own), tried)


def look_ups(graph: Graph) -> tuple[LookUp, ...]:
    """All whose indices depend on an input, and on nothing that is not known."""
    depend: set[NodeId] = set()
    unknown = unknown_nodes(graph, memory=True)
    found: list[LookUp] = []
    shapes: dict[NodeId, tuple[int, ...]] = {}
    for node in graph.nodes:
        shapes[node.id] = node.type.shape
        if node.op == "input" or any(operand in depend for operand in node.operands):
            depend.add(node.id)
        # A loss may be given targets that it ignores, which are no rows.
        for at, dim in indices(node) if node.op != "cross_entropy" else ():
            index = node.operands[at]
            if index in depend and index not in unknown:
                found.append(LookUp(node, index, shapes[node.operands[0]][dim]))
    return tuple(found)


def cone(graph: Graph, asked: Sequence[LookUp]) -> Graph:
    """What the indices of look-ups depend on, with these as outputs."""
    wanted = dict.fromkeys(each.index for each in asked)
    needed = set(wanted)
    for node in reversed(graph.nodes):
        if node.id in needed:
            needed.update(node.operands)
    return replace(
        graph,
        nodes=tuple(node for node in graph.nodes if node.id in needed),
        outputs=tuple(Output(name=str(index), value=index) for index in wanted),
    )


def _beyond(asked: Sequence[LookUp], indices: dict[str, PerRank]) -> tuple[LookUp, str] | None:
    for each in asked:
        for rank, values in enumerate(indices[str(each.index)]):
            if values.size and not 0 <= values.min() <= values.max() < each.size:
                return (
                    each,
                    f"index {int(values.min())}..{int(values.max())} among {each.size} on rank {rank}",
                )
    return None


def _refuted(pair: Pair, verdict: Proved, draw: Draw, found: tuple[LookUp, str], budget: Search) -> Verdict:
    look_up, said = found
    suspect = Suspect(
        candidate=place_of(look_up.node),
        baseline=None,
        known=(f"it is asked for {said}",),
        needed=f"an index of its {look_up.size} rows, or a mask that keeps others away",
        guess=f"reads beyond its table: {said}, where the baseline reads rows that exist",
    )
    outputs = tuple(replace(output, layout=None) for output in verdict.outputs)
    whole = differing(pair, pair.relations.outputs, draw)[0] if affordable(pair, budget) else None
    if whole is None:
        return Unknown(
            reason=Reason.UNPROVED,
            outputs=outputs,
            assumptions=verdict.assumptions,
            suspect=suspect,
            lead=f"a look-up of the candidate reads beyond its table: {said}",
            work=verdict.work,
        )
    return Refuted(
        outputs=outputs,
        assumptions=verdict.assumptions,
        witness=witness(pair, whole),
        suspect=suspect,
        work=verdict.work,
    )


def _assuming(verdict: Proved, count: int, tried: int) -> Proved:
    if not count:
        return verdict
    looked = f"tried on {tried} kinds of values" if tried else "which was not tried"
    said = f"look-ups read rows that exist, on every rank ({count} in the candidate; {looked})"
    return replace(verdict, assumptions=(*verdict.assumptions, said))
