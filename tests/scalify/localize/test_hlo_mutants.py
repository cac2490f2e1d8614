"""Edits of a production compiler's graph: never proved, and the edited instruction is blamed."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from graph_mutants import mutants
from hlo_edits import (
    Edit,
    neuron_graph,
    other_contraction,
    other_dimensions,
    other_groups,
    other_operand,
    other_reduction,
    shifted_slice,
    without_all_reduce,
    write_edited,
)

from scalify.load import load
from scalify.prove.verify import verify
from scalify.relate.relate import relate
from scalify.verdict import Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One edit of one graph; what must be blamed, and words of the guess."""

    edit: Edit
    instruction: str
    words: str
    graph: str = "tp2_layer1"


CASES = {
    "window of a fused projection": Case(
        edit=shifted_slice("slice.54", dim=1, by=64), instruction="slice.54", words="moved window"
    ),
    "window of a head": Case(
        edit=shifted_slice("slice.76", dim=3, by=32), instruction="slice.76", words="from 0 to 32"
    ),
    "groups of two": Case(
        edit=other_groups("all-reduce.127", ((0, 1), (2, 3))),
        instruction="all-reduce.127",
        words="over 2 of 4 ranks is still pending: the groups {0,1},{2,3} leave it",
        graph="tp4_layer1",
    ),
    "groups apart": Case(
        edit=other_groups("all-reduce.146", ((0, 2), (1, 3))),
        instruction="all-reduce.146",
        words="the groups {0,2},{1,3} leave it",
        graph="tp4_layer1",
    ),
    "maximum over ranks": Case(
        edit=other_reduction("all-reduce.146", "maximum"),
        instruction="all-reduce.146",
        words="by max where a sum is pending",
    ),
    "normaliser by maximum": Case(
        edit=other_reduction("reduce.109", "maximum"),
        instruction="reduce.109",
        words="reduces with max where the baseline reduces with sum",
    ),
    "no all-reduce": Case(
        edit=without_all_reduce("all-reduce.127"),
        instruction="add.133",
        words="missing all-reduce after dot.124",
    ),
    "residual of the wrong value": Case(
        edit=other_operand("add.152", 1, "all-reduce.127"),
        instruction="add.152",
        words="operand 1 is the baseline's reshape.126 where it reads add.127",
    ),
    "heads repeated in another order": Case(
        edit=other_dimensions("broadcast.89", (0, 1, 3, 4)),
        instruction="broadcast.89",
        words="different dims: (0, 1, 3, 4) where",
    ),
    "attention over queries": Case(
        edit=other_contraction("dot.121", lhs=(2,), rhs=(0,)), instruction="dot.121", words="different spec"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_edited_instruction_is_the_suspect(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    baseline = load(neuron_graph("tp1_layer1"))
    candidate = load(write_edited(neuron_graph(case.graph), tmp_path / "wrong.hlo.pb", case.edit))
    verdict = verify(baseline, candidate, relate(baseline, candidate))
    assert isinstance(verdict, Unknown)
    assert verdict.suspect is not None
    assert verdict.suspect.candidate.node.partition(":")[0] == case.instruction, verdict.suspect
    assert verdict.suspect.candidate.site is not None
    assert case.words in verdict.suspect.guess


def test_mutants_change_one_node_that_matters() -> None:
    candidate = load(neuron_graph("tp2_layer1"))
    own = candidate.by_id()
    for mutant in mutants(candidate):
        changed = [node.id for node in mutant.graph.nodes if node != own[node.id]]
        assert changed == [mutant.node.id], mutant.label
