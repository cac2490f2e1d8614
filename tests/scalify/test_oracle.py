"""The engine against an oracle without one: plain loops over the same rule functions find the same facts."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from algebra_graphs import algebra_graph
from forward_reasoner import Findings, facts_of, findings
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from layered_graphs import decoder
from random_shardings import NotSharded, sharded_pair
from scalify_cases import Pair, case_names, load_pair, with_itself
from scalify_graphs import graphs
from scalify_mutants import mutants

from scalify.errors import InvalidGraph
from scalify.ir.graph import Graph, Output
from scalify.partition import Segment, computed, partition, segments
from scalify.prove.chain import prove_chain
from scalify.prove.engine import Budget, StopReason, saturate
from scalify.prove.region import Region, RegionProof, goal_terms, terms_of
from scalify.relate.model import Relations
from scalify.relate.relate import relate

NAMES = case_names()
SEEDS = range(40)

Segments = tuple[Sequence[Segment], Sequence[Segment]]


def _in_one(baseline: Graph, candidate: Graph) -> Segments:
    return segments(computed(baseline), (), baseline), segments(computed(candidate), (), candidate)


def _regions(
    baseline: Graph, candidate: Graph, relations: Relations, parts: Segments | None = None
) -> list[tuple[Region, RegionProof]]:
    """Every region as the engine left it."""
    chain = prove_chain(
        baseline, candidate, parts or _in_one(baseline, candidate), relations, Budget(), memo=False
    )
    proved = [(link.region, chain.proofs[link.proof]) for link in chain.links]
    return proved if chain.stuck is None else [*proved, chain.stuck]


def _assert_same_facts(region: Region, found: Findings) -> None:
    """An engine that nothing stops early derives exactly what the oracle does."""
    lowered, reasoner = terms_of(region), found.reasoner
    pairs = [goal_terms(goal, lowered) for goal in region.goals]
    saturation = saturate(
        lowered.terms, reasoner.used, reasoner.baseline, pairs, lambda _, view: False, Budget()
    )
    assert saturation.stop_reason is StopReason.SATURATED
    assert facts_of(saturation, reasoner) == found.facts


def _assert_same_goals(region: Region, proof: RegionProof, found: Findings) -> None:
    """What the engine shows of a goal is among what the oracle finds, and outputs are shown if they can be.

    Of a value that is not an output one way is enough, so others need not be looked for.
    """
    for shown, known in zip(proof.shown, found.shown, strict=True):
        assert shown is None or shown in known
    shown_of = {goal.candidate for goal, shown in zip(region.goals, proof.shown, strict=True) if shown}
    known_of = {goal.candidate for goal, known in zip(region.goals, found.shown, strict=True) if known}
    assert shown_of == known_of
    for goal, shown, known in zip(region.goals, proof.shown, found.shown, strict=True):
        assert goal.output is None or (shown is None) == (not known)


def _agreed(baseline: Graph, candidate: Graph, relations: Relations) -> bool:
    """Whether both prove all outputs; fails where they differ in anything."""
    ((region, proof),) = _regions(baseline, candidate, relations)
    found = findings(region)
    _assert_same_goals(region, proof, found)
    _assert_same_facts(region, found)
    return all(found.shown)


@pytest.mark.parametrize("name", NAMES)
def test_engine_and_oracle_agree_on_every_case(name: str) -> None:
    pair = load_pair(name)
    relations = pair.relations()
    if not relations.undecided:
        _agreed(pair.baseline, pair.candidate, relations)


@pytest.mark.parametrize("unreduced", [(), (1,)], ids=["right", "wrong"])
def test_they_agree_on_regions_and_what_lies_between(unreduced: tuple[int, ...]) -> None:
    one, two = decoder(layers=3), decoder(layers=3, ranks=2, unreduced=unreduced)
    regions = _regions(one, two, relate(one, two), partition(one, two))
    assert len(regions) == 2
    for region, proof in regions:
        _assert_same_goals(region, proof, findings(region))


def _with_all_results(graph: Graph) -> Graph:
    """Everything that is used nowhere is an output: no node is there in vain."""
    used = {operand for node in graph.nodes for operand in node.operands}
    outputs = [Output(name=node.id, value=node.id) for node in graph.nodes if node.id not in used]
    return replace(graph, outputs=tuple(outputs))


def _random_pair(seed: int) -> Pair:
    """The first graph from ``seed`` on that is of one device and can be done by ranks."""
    for number in range(1000 * seed, 1000 * (seed + 1)):
        graph = algebra_graph(number, steps=9)
        if graph.mesh.size == 1:
            try:
                return sharded_pair(_with_all_results(graph), Random(seed))
            except (NotSharded, InvalidGraph):
                continue
    raise AssertionError("hardly any graph cannot be sharded")


@pytest.mark.parametrize("seed", SEEDS)
def test_they_agree_on_random_programs_of_ranks(seed: int) -> None:
    pair = _random_pair(seed)
    if _agreed(pair.baseline, pair.candidate, pair.relations()) and pair.is_finite():
        assert not pair.differing()


@pytest.mark.parametrize("seed", SEEDS)
def test_they_agree_on_random_programs_with_a_mistake(seed: int) -> None:
    graph = _with_all_results(algebra_graph(seed, steps=8))
    found = list(mutants(graph))
    assert found
    mutant = Random(seed).choice(found).graph
    _agreed(graph, mutant, with_itself(graph))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(graphs(), st.integers(0, 2**32))
def test_they_agree_on_any_graph_that_ranks_share(graph: Graph, seed: int) -> None:
    assume(graph.mesh.size == 1)
    try:
        pair = sharded_pair(graph, Random(seed))
    except (NotSharded, InvalidGraph):
        assume(False)
        return
    _agreed(pair.baseline, pair.candidate, pair.relations())


def test_an_oracle_that_knows_less_disagrees() -> None:
    """The comparison can fail: without the facts of one rule the sets differ."""
    pair = load_pair("proved/c14_column_then_row_parallel")
    ((region, proof),) = _regions(pair.baseline, pair.candidate, pair.relations())
    found = findings(region)
    pending = frozenset(fact for fact in found.facts if fact.view.partial is not None)
    assert pending
    assert facts_of(proof.saturation, found.reasoner) - (found.facts - pending)
