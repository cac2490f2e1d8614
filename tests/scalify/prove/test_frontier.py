from scalify_cases import load_pair

from scalify.partition import computed, segments
from scalify.prove.chain import prove_chain
from scalify.prove.engine import Budget
from scalify.prove.frontier import beyond
from scalify.prove.verify import Options, verify
from scalify.verdict import Proved, Unknown

STEPS = "proved/b10_two_losses_by_one_count"
WRONG = "unknown/b10_mean_of_ratios"


def test_what_the_normal_form_sees_only_behind_a_cut_is_proved() -> None:
    pair = load_pair(STEPS)
    at_once = verify(pair.baseline, pair.candidate, pair.relations(), Options(partition=False))
    assert isinstance(at_once, Unknown)
    assert isinstance(verify(pair.baseline, pair.candidate, pair.relations()), Proved)


def test_a_cut_lies_at_values_that_are_known() -> None:
    pair = load_pair(STEPS)
    graphs = pair.baseline, pair.candidate
    parts = tuple(segments(computed(graph), (), graph) for graph in graphs)
    whole = parts[0], parts[1]
    chain = prove_chain(*graphs, whole, pair.relations(), Budget(), memo=False)
    assert chain.stuck is not None
    cut = beyond((whole[0][0], whole[1][0]), chain.stuck, graphs)
    assert cut is not None
    (before, behind), (other_before, other_behind) = cut
    assert other_before.leaving and set(other_before.leaving) <= set(other_behind.entering)
    assert behind.leaving == whole[0][0].leaving and other_behind.leaving == whole[1][0].leaving
    assert len(other_behind.nodes) < len(whole[1][0].nodes)
    assert {node.id for node in before.nodes} <= {node.id for node in whole[0][0].nodes}


def test_nothing_wrong_is_proved_step_by_step() -> None:
    pair = load_pair(WRONG)
    assert isinstance(verify(pair.baseline, pair.candidate, pair.relations()), Unknown)
