"""Mistakes planted in graphs: well-formed, the same whenever drawn, and blamed on the right nodes."""

from graph_edits import Edit, first_uses
from model_mutants import CLASSES, chosen
from scalify_files import perceptron
from wrong_collectives import missing_collective

from scalify.ir.check import check
from scalify.ir.graph import Graph, NodeId
from scalify.refute.budget import Search
from scalify.verdict import Proved, Refuted
from scalify.verification import verification


def sharded() -> Graph:
    return perceptron(ranks=2, layers=2)


def test_every_mutant_is_well_formed_and_another_program():
    drawn = chosen("perceptron", sharded(), most=100)
    assert len(drawn) > 20
    for mutant in drawn:
        check(mutant.graph)
        assert mutant.graph != sharded()
        assert mutant.places & {node.id for node in (*mutant.graph.nodes, *sharded().nodes)}


def test_names_are_their_own_and_a_draw_can_be_repeated():
    drawn = chosen("perceptron", sharded(), most=2)
    assert len({mutant.name for mutant in drawn}) == len(drawn)
    assert [mutant.name for mutant in chosen("perceptron", sharded(), most=2)] == [m.name for m in drawn]
    assert {mutant.kind for mutant in drawn} <= CLASSES.keys()


def test_a_missing_sum_is_blamed_on_what_it_was_of_or_on_who_reads_it():
    for label, wrong in missing_collective(sharded()):
        assert wrong is not None
        nodes = sharded().by_id()
        (operand,) = nodes[NodeId(label)].operands
        assert operand in wrong.places
        verdict = verification(perceptron(layers=2), wrong.graph, search=Search(duration_s=5.0)).verdict
        assert isinstance(verdict, Refuted)
        assert verdict.suspect is not None
        assert verdict.suspect.candidate.node in wrong.places


def test_a_sum_behind_a_factor_is_still_proved():
    edit = Edit(sharded())
    first = next(node for node in sharded().nodes if node.op == "all_reduce")
    two = edit.after(first.id, "constant", shape=(), dtype="f32", data=(1.0,))
    edit.read_instead(first.id, edit.after(two, "mul", first.id, two))
    made = edit.done()
    assert made is not None
    assert isinstance(verification(perceptron(layers=2), made.graph).verdict, Proved)


def test_an_edit_that_nobody_reads_is_none():
    edit = Edit(sharded())
    edit.after(NodeId("x"), "neg", NodeId("x"))
    assert edit.done() is None


def test_first_uses_are_those_behind_movements_of_data():
    edit = Edit(sharded())
    moved = edit.after(NodeId("x"), "reverse", NodeId("x"), axes=(1,))
    edit.read_instead(NodeId("x"), moved)
    wrong = edit.done()
    assert wrong is not None
    reader = next(node for node in sharded().nodes if node.op == "einsum")
    assert reader.id in first_uses(wrong.graph, [moved])
