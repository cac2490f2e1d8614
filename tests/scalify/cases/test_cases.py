"""The corpus of pairs: each is what it says in NumPy, and gets the verdict that it says."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from scalify_cases import (
    FOLDER,
    case_names,
    gap_of,
    load_pair,
    misplaced,
    suspect_lines,
    with_itself,
)
from scalify_mutants import Mutant, mutants

from scalify.ir.graph import Graph
from scalify.prove.verify import Options, verify
from scalify.relate.model import Relations
from scalify.relate.relate import relate
from scalify.verdict import Proved, Reason, Unknown, Verdict

NAMES = case_names()
WRONG = tuple(name for name in NAMES if name.startswith("unknown/"))
UNDECIDED = {
    "proved/b03_summed_over_context_averaged_over_data": "two axes of one size may cut either dimension",
    "proved/b06_reduced_everywhere_first": "the baseline cuts its input in halves, the ranks hold quarters",
    "unknown/b06_reduced_copy_on_another_rank": "the baseline cuts its input in halves, the ranks quarters",
    "proved/c11_replicated_key_heads": "two axes of one size may cut the dimension",
    "proved/k08_ring_turns_the_right_way": "the baseline cuts its input in unequal parts",
    "unknown/k08_ring_turns_the_other_way": "the baseline cuts its input in unequal parts",
    "unknown/k03_key_heads_by_the_wrong_axis": "two axes of one size may cut the dimension",
    "unknown/k04_ranks_in_another_order": "two axes of one size may cut the dimension",
    "unknown/b35_stack_of_all_slices": "the shapes of the outputs cannot correspond",
}
"""Cases whose relations do not follow from names and shapes."""
OTHERWISE = {
    "proved/c02_rotary_halves_or_neighbours": "the order of the rows of a weight cannot be seen",
    "unknown/b40_fused_gate_cut_as_one": "each part that the baseline reads is taken to be sharded",
    "unknown/b55_first_slice_as_relation": "what a loader read cannot be seen",
    "unknown/b68_head_uninitialised": "what was not loaded cannot be seen",
}
"""Cases that assume what cannot be inferred: under other assumptions they are other pairs."""


def _expected_to_fail(names: tuple[str, ...], reason_of: Callable[[str], str]) -> list[object]:
    """What is not right yet is expected to fail, and noticed once it is right."""
    return [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=reason)) if reason else name
        for name, reason in ((name, reason_of(name)) for name in names)
    ]


def _without(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in others)


@cache
def _verdict(name: str) -> Verdict:
    pair = load_pair(name)
    return verify(pair.baseline, pair.candidate, pair.relations())


def _shown(verdict: Verdict) -> set[str]:
    return {output.candidate for output in verdict.outputs if output.layout is not None}


@pytest.mark.parametrize("name", NAMES)
def test_folder_and_verdict_agree(name: str) -> None:
    assert load_pair(name).verdict == name.split("/")[0]


def _graphs() -> dict[str, Graph]:
    """Every graph once: many pairs share a baseline."""
    found: dict[int, tuple[str, Graph]] = {}
    for name in NAMES:
        pair = load_pair(name)
        found.setdefault(id(pair.baseline), (f"{name}, baseline", pair.baseline))
        found.setdefault(id(pair.candidate), (f"{name}, candidate", pair.candidate))
    return dict(found.values())


GRAPHS = _graphs()


@pytest.mark.parametrize("name", GRAPHS)
def test_each_graph_is_proved_equal_to_itself(name: str) -> None:
    assert isinstance(verify(GRAPHS[name], GRAPHS[name], with_itself(GRAPHS[name])), Proved)


@pytest.mark.parametrize("name", NAMES)
def test_values_differ_exactly_where_the_case_says(name: str) -> None:
    pair = load_pair(name)
    wrong = set(pair.outputs) - set(pair.agreeing) if pair.verdict == "unknown" or pair.declared else set()
    assert set(pair.differing()) == wrong


@pytest.mark.parametrize("name", _expected_to_fail(NAMES, gap_of))
def test_verdict(name: str) -> None:
    assert isinstance(_verdict(name), Proved) == (load_pair(name).verdict == "proved")


@pytest.mark.parametrize("name", NAMES)
def test_cuts_and_memory_lose_no_proof(name: str) -> None:
    pair = load_pair(name)
    whole = verify(pair.baseline, pair.candidate, pair.relations(), Options(partition=False, memo=False))
    assert not isinstance(whole, Proved) or isinstance(_verdict(name), Proved)


@pytest.mark.parametrize("name", WRONG)
def test_no_output_that_differs_is_shown_as_proved(name: str) -> None:
    assert _shown(_verdict(name)) <= set(load_pair(name).agreeing)


@pytest.mark.parametrize("name", [name for name in WRONG if load_pair(name).agreeing])
def test_outputs_that_agree_are_shown_as_proved(name: str) -> None:
    assert _shown(_verdict(name)) == set(load_pair(name).agreeing)


def _own_lines(name: str) -> set[int]:
    """The lines of a case's file on which nodes of its candidate stand."""
    sites = [node.site for node in load_pair(name).candidate.nodes if node.site is not None]
    return {site.line for site in sites if site.file == str(FOLDER / f"{name}.py")}


BY_ASSUMPTION = tuple(name for name in WRONG if not _own_lines(name))
"""Wrong only in what they assume: their graphs are those of a right pair, and no line is to blame."""


@pytest.mark.parametrize("name", _without(WRONG, BY_ASSUMPTION))
def test_a_node_stands_on_every_suspect_line(name: str) -> None:
    lines = suspect_lines(name)
    assert lines and _own_lines(name).issuperset(lines)


@pytest.mark.parametrize("name", _expected_to_fail(_without(WRONG, BY_ASSUMPTION), misplaced))
def test_the_suspect_stands_on_a_suspect_line(name: str) -> None:
    verdict = _verdict(name)
    assert isinstance(verdict, Unknown)
    if verdict.reason is Reason.UNRELATED:
        assert "output y" in verdict.missing[0]
        return
    assert verdict.suspect is not None and verdict.suspect.candidate.site is not None
    assert verdict.suspect.candidate.site.line in suspect_lines(name)


@pytest.mark.parametrize("name", NAMES)
def test_inferred_relations_are_those_of_the_case(name: str) -> None:
    pair = load_pair(name)
    inferred = relate(pair.baseline, pair.candidate)
    assert bool(inferred.undecided) == (name in UNDECIDED)
    if not inferred.undecided:
        assert _assume_the_same(pair.relations(), inferred) == (name not in OTHERWISE)


def _assume_the_same(own: Relations, inferred: Relations) -> bool:
    choices = {relation.candidate: [index for _, index in relation.choices] for relation in inferred.outputs}
    assert all(relation.choices[0][1] in choices[relation.candidate] for relation in own.outputs)
    return {(x.candidate, x.parts) for x in own.inputs} == {(x.candidate, x.parts) for x in inferred.inputs}


@pytest.mark.parametrize("name", [name for name in WRONG if name not in {*UNDECIDED, *OTHERWISE}])
def test_no_wrong_pair_is_proved_under_inferred_relations(name: str) -> None:
    """More layouts of the outputs are allowed there than the one that the case asks for."""
    pair = load_pair(name)
    assert isinstance(verify(pair.baseline, pair.candidate, relate(pair.baseline, pair.candidate)), Unknown)


def _planted(per_case: int) -> list[tuple[str, Mutant]]:
    rng = Random(5)
    right = [(name, list(mutants(load_pair(name).candidate))) for name in NAMES if name not in WRONG]
    return [
        (name, made)
        for name, all_made in right
        for made in rng.sample(all_made, min(per_case, len(all_made)))
    ]


@pytest.mark.parametrize(("name", "mutant"), _planted(3), ids=lambda x: x if isinstance(x, str) else x.what)
def test_a_planted_bug_is_not_proved(name: str, mutant: Mutant) -> None:
    pair = replace(load_pair(name), candidate=mutant.graph, declared=False)
    verdict = verify(pair.baseline, pair.candidate, pair.relations())
    assert isinstance(verdict, Unknown) or (pair.is_finite() and not pair.differing())
