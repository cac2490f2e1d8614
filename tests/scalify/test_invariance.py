"""What a verdict must not depend on: regions and their memo, the order and names of nodes, the run."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from framework_models import FAMILIES, graph_of, language_model
from layered_graphs import decoder
from scalify_cases import case_names, load_pair
from scalify_mutants import mutants
from verdict_texts import texts_from_process, texts_of, verdict_text

import scalify
from scalify.ir.check import check
from scalify.ir.graph import Graph, Node, NodeId
from scalify.partition import partition
from scalify.prove.verify import Options, verify
from scalify.relate.relate import relate
from scalify.verdict import Proved, Unknown, Verdict, Work

NAMES = case_names()
OPTIONS = (Options(), Options(memo=False), Options(partition=False))


def _claims(verdict: Verdict) -> object:
    suspect = verdict.suspect if isinstance(verdict, Unknown) else None
    return type(verdict), verdict.outputs, verdict.assumptions, suspect


def _work(verdict: Verdict) -> Work:
    assert verdict.work is not None
    return verdict.work


def _shown(verdict: Verdict) -> set[str]:
    return {output.candidate for output in verdict.outputs if output.layout is not None}


@pytest.mark.parametrize("name", NAMES)
def test_every_graph_of_a_case_is_proved_equal_to_itself(name: str) -> None:
    pair = load_pair(name)

    for graph in (pair.baseline, pair.candidate):
        assert isinstance(scalify.verify(graph, graph), Proved)


@cache
def _model(family: str) -> Graph:
    return graph_of(language_model(family, "eager"))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_captured_model_is_proved_equal_to_itself(family: str) -> None:
    pytest.importorskip("transformers", reason="Transformers is not installed")
    graph = _model(family)
    verdict = scalify.verify(graph, graph)

    assert isinstance(verdict, Proved)
    assert verdict.work.regions > 2


def shuffled(graph: Graph, seed: int) -> Graph:
    """The same program, its nodes in another order that computes operands first, under other ids."""
    rng = Random(seed)
    mixed = rng.sample(graph.nodes, len(graph.nodes))
    names = {node.id: NodeId(f"n{number}") for number, node in enumerate(mixed)}
    waiting = list(graph.nodes)
    done: dict[NodeId, Node] = {}
    while waiting:
        ready = [node for node in waiting if all(operand in done for operand in node.operands)]
        node = rng.choice(ready)
        waiting.remove(node)
        done[node.id] = replace(
            node, id=names[node.id], operands=tuple(names[operand] for operand in node.operands)
        )
    outputs = tuple(replace(output, value=names[output.value]) for output in graph.outputs)
    made = replace(graph, nodes=tuple(done.values()), outputs=outputs)
    check(made)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_neither_order_nor_names_of_nodes_matter(name: str) -> None:
    pair = load_pair(name)
    other = replace(pair, baseline=shuffled(pair.baseline, 1), candidate=shuffled(pair.candidate, 2))
    mine, its = (verify(p.baseline, p.candidate, p.relations()) for p in (pair, other))

    assert type(mine) is type(its)
    assert mine.outputs == its.outputs


LAYERS = 5
ONE, TWO = decoder(layers=LAYERS), decoder(layers=LAYERS, ranks=2)


@pytest.mark.parametrize("seed", range(3))
def test_order_and_names_do_not_matter_to_many_regions(seed: int) -> None:
    assert isinstance(scalify.verify(shuffled(ONE, seed), shuffled(TWO, seed + 100)), Proved)


def _mistaken(count: int) -> dict[str, Graph]:
    """Ranks with a mistake in one layer."""
    made = Random(7).sample(list(mutants(TWO)), count)
    return {mutant.what: mutant.graph for mutant in made}


LAYERED: Mapping[str, Graph] = {
    "right": TWO,
    "sum forgotten in the first layer": decoder(layers=LAYERS, ranks=2, unreduced=(0,)),
    "sum forgotten in the last layer": decoder(layers=LAYERS, ranks=2, unreduced=(LAYERS - 1,)),
    **_mistaken(8),
}


def test_there_are_regions_of_which_some_are_equal() -> None:
    """Else the next tests compare nothing."""
    relations = relate(ONE, TWO)
    distinct = [_work(verify(ONE, TWO, relations, options)).distinct_regions for options in OPTIONS]

    assert distinct[0] < len(partition(ONE, TWO)[0]) == distinct[1]
    assert distinct[2] == 1


@pytest.mark.parametrize("name", LAYERED)
def test_the_memo_does_not_matter_and_regions_prove_no_more_than_the_whole(name: str) -> None:
    relations = relate(ONE, LAYERED[name])
    usual, without_memo, at_once = (verify(ONE, LAYERED[name], relations, options) for options in OPTIONS)

    assert _claims(usual) == _claims(without_memo)
    assert isinstance(at_once, Proved) or not isinstance(usual, Proved)
    assert _shown(usual) <= _shown(at_once)


@pytest.mark.parametrize("hash_seed", [1, 2])
def test_another_process_says_the_same(hash_seed: int) -> None:
    """Work and certificates included; sets of strings have another order there."""
    names = NAMES[::6]

    assert texts_from_process(names, hash_seed=hash_seed) == texts_of(names)


def test_another_run_says_the_same_of_many_regions() -> None:
    for candidate in (LAYERED["right"], LAYERED["sum forgotten in the last layer"]):
        relations = relate(ONE, candidate)

        assert verdict_text(ONE, candidate, relations) == verdict_text(ONE, candidate, relations)
