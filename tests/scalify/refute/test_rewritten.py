"""Random programs against the same written otherwise, equal over the reals: none may be refuted."""

from dataclasses import replace
from random import Random

import pytest
from algebra_graphs import algebra_graph
from layered_graphs import decoder
from scalify_cases import with_itself
from scalify_mutants import mutants
from sound_rewrites import rewritten

from scalify.ir.graph import Graph, Output
from scalify.refute.budget import Search
from scalify.refute.refute import refute
from scalify.relate.relate import relate
from scalify.verdict import Reason, Refuted, Unknown

UNKNOWN = Unknown(reason=Reason.UNPROVED, outputs=(), assumptions=())
BUDGET = Search(draws=7)


def with_all_results(graph: Graph) -> Graph:
    used = {operand for node in graph.nodes for operand in node.operands}
    loose = [node.id for node in graph.nodes if node.id not in used and node.op != "input"]
    return replace(graph, outputs=tuple(Output(name=each, value=each) for each in loose))


@pytest.mark.parametrize("seed", range(30))
def test_what_is_written_otherwise_is_not_refuted(seed: int):
    graph = with_all_results(algebra_graph(seed, steps=12))
    other = rewritten(graph, Random(seed))
    assert isinstance(refute(graph, other, with_itself(graph), UNKNOWN, BUDGET), Unknown)


@pytest.mark.parametrize("ranks", [2, 4])
def test_neither_is_a_decoder_on_ranks(ranks: int):
    one, many = decoder(layers=2), rewritten(decoder(layers=2, ranks=ranks), Random(ranks))
    assert isinstance(refute(one, many, relate(one, many), UNKNOWN, BUDGET), Unknown)


def test_a_mistake_in_what_is_written_otherwise_is_found():
    """Doubt must not swallow everything."""
    one, many = decoder(layers=2), rewritten(decoder(layers=2, ranks=2), Random(3))
    drawn = Random(5).sample(list(mutants(many)), 12)
    found = [refute(one, each.graph, relate(one, each.graph), UNKNOWN, BUDGET) for each in drawn]
    assert sum(isinstance(verdict, Refuted) for verdict in found) >= 6
