"""Mistakes planted in graphs: well-formed, the same whenever drawn, and blamed on the right nodes.

And what the benchmark has published of them: the page holds what the file holds, and nothing wrong is proved.
"""

from graph_edits import Edit
from model_mutants import CLASSES, SEED, chosen
from mutation.judging import Judged, Named, Outcome, arguments
from mutation.programs import PROGRAMS
from mutation.results import DOCS, RESULT, Tried, errors, read, rows, summary, with_table
from scalify_cases import Program
from scalify_files import perceptron
from wrong_collectives import missing_collective

from scalify.ir.check import check
from scalify.ir.graph import Graph, Node, NodeId
from scalify.refute.budget import Search
from scalify.verdict import Proved, Refuted
from scalify.verification import verification


def sharded() -> Graph:
    return perceptron(ranks=2, layers=2)


def the(op: str, graph: Graph) -> Node:
    return next(node for node in graph.nodes if node.op == op)


def test_every_mutant_is_well_formed_and_another_program():
    drawn = chosen("perceptron", sharded(), most=100)
    assert len(drawn) > 20
    for mutant in drawn:
        check(mutant.graph)
        assert mutant.graph != sharded()
        assert mutant.exact & {node.id for node in mutant.graph.nodes}
        assert mutant.exact <= mutant.places


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
        assert NodeId(label) not in wrong.graph.by_id()
        assert operand in wrong.exact
        assert wrong.exact == {operand, *(node.id for node in sharded().nodes if label in node.operands)}
        verdict = verification(perceptron(layers=2), wrong.graph, search=Search(duration_s=5.0)).verdict
        assert isinstance(verdict, Refuted)
        assert verdict.suspect is not None
        assert verdict.suspect.candidate.node in wrong.exact


def test_a_sum_behind_a_factor_is_still_proved():
    edit = Edit(sharded())
    first = the("all_reduce", sharded())
    two = edit.after(first.id, "constant", shape=(), dtype="f32", data=(1.0,))
    edit.read_instead(first.id, edit.after(two, "mul", first.id, two))
    made = edit.done()
    assert made is not None
    assert isinstance(verification(perceptron(layers=2), made.graph).verdict, Proved)


def test_an_edit_that_nobody_reads_is_none():
    edit = Edit(sharded())
    edit.after(NodeId("x"), "neg", NodeId("x"))
    assert edit.done() is None


def chain() -> tuple[Graph, list[NodeId]]:
    """A negation, two views of it, a multiple of that, and what is computed with the multiple."""
    program = Program(tp=2)
    value = program.input("x", "f32", (2, 3))
    made: list[NodeId] = []
    for op in ("neg", "transpose", "reshape", "mul", "exp", "tanh"):
        if op == "transpose":
            value = program.add(op, value, perm=(1, 0))
        elif op == "reshape":
            value = program.shaped(value, 6)
        else:
            value = program.add(op, value, 2.0) if op == "mul" else program.add(op, value)
        made.append(value)
    program.output("y", value)
    return program.graph(), made


def test_views_are_looked_through_on_the_way_to_a_use_and_factors_are_not():
    graph, (negated, turned, flat, doubled, powers, _) = chain()
    edit = Edit(graph)
    edit.change(negated, op="exp")
    wrong = edit.done()
    assert wrong is not None
    assert wrong.exact == {negated, turned}
    assert wrong.places == {negated, turned, flat, doubled}
    assert powers not in wrong.places


def test_of_a_removed_node_what_fed_it_and_who_reads_that_now_may_be_blamed():
    graph, (negated, turned, flat, doubled, powers, last) = chain()
    edit = Edit(graph)
    edit.read_instead(powers, doubled)
    wrong = edit.done()
    assert wrong is not None
    assert powers not in wrong.graph.by_id()
    assert wrong.exact == wrong.places == {doubled, last}
    edit = Edit(graph)
    edit.read_instead(doubled, flat)
    wrong = edit.done()
    assert wrong is not None
    assert wrong.exact == {flat, powers}
    assert wrong.places == {negated, turned, flat, powers}


def test_of_a_node_that_was_put_in_it_and_its_readers_may_be_blamed():
    graph, (*_, doubled, powers, last) = chain()
    edit = Edit(graph)
    made = edit.after(powers, "tanh", powers)
    edit.read_instead(powers, made)
    wrong = edit.done()
    assert wrong is not None
    assert wrong.exact == wrong.places == {made, last}
    assert doubled not in wrong.places


def test_who_reads_another_operand_is_blamed_and_its_first_uses():
    graph, (negated, _, _, doubled, powers, last) = chain()
    edit = Edit(graph)
    edit.read_instead(powers, doubled, [last])
    wrong = edit.done()
    assert wrong is not None
    assert wrong.exact == {last}
    assert negated not in wrong.places


def one(
    name: str, outcome: Outcome = "refuted", named: Named | None = "exactly", *, agrees: bool | None = None
) -> Judged:
    return Judged(
        name=name,
        kind="wrong_group",
        outcome=outcome,
        named=named,
        suspect="n",
        agrees=agrees,
        family="plain",
        cpu_s=1.0,
    )


def test_a_proved_mutant_is_an_error_unless_it_is_argued_and_agrees():
    tried = Tried(nodes=3, proved=True, rows=(one("m/a", "proved", agrees=True), one("m/b")))
    assert errors({"m": tried}, {}) == ["m/a: proved, but nobody argues why it is right"]
    assert not errors({"m": tried}, {"m/a": "why"})
    differs = Tried(nodes=3, proved=True, rows=(one("m/a", "proved", agrees=False),))
    assert errors({"m": differs}, {"m/a": "why"}) == ["m/a: proved, but it differs"]
    assert errors({"m": tried}, {"m/a": "why", "m/b": "why"}) == ["m/b: argued to be right, but it differs"]
    assert errors({"m": tried}, {"m/a": "why", "m/c": "why"}) == ["m/c: argued, but not drawn"]


def test_rates_are_of_what_is_wrong():
    found = (
        one("m/a"),
        one("m/b", named="through views"),
        one("m/c", named="elsewhere"),
        one("m/d", "unknown", agrees=True),
        one("m/e", "proved", None, agrees=True),
    )
    figures = summary(found, {"m/e": "why"})
    assert {key: value for key, value in figures.items() if key != "median_cpu_s"} == {
        "mutants": 5,
        "equivalent": 1,
        "wrong": 4,
        "refuted": 3,
        "named_exactly": 1,
        "named_through_views": 2,
        "unknown": 1,
        "proved": 0,
    }


def test_what_was_published_proves_nothing_wrong_and_the_page_holds_it():
    results, argued = read(), arguments()
    assert not errors(results, argued)
    page = DOCS.read_text(encoding="utf-8")
    assert with_table(page, results, argued) == page
    assert {program.name for program in PROGRAMS} >= results.keys()
    assert summary(rows(results), argued)["proved"] == 0
    assert f'"seed": {SEED}' in RESULT.read_text(encoding="utf-8")
