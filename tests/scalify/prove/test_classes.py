"""Which terms are equal: forms, commuted operands, and what follows for operations on them."""

import numpy as np
from algebra_graphs import algebra_graph
from lowered_values import Leaves, NodeBlocks
from op_cases import values_for

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import NodeId
from scalify.ir.mesh import Mesh, groups_along
from scalify.normalize.lower import as_leaves, lower
from scalify.normalize.meaning import Values
from scalify.normalize.terms import Access, TermId, Terms
from scalify.prove.classes import Classes
from scalify.prove.forms import forms_of

TP = Mesh(axes=(("dp", 2), ("tp", 2)))


def _lowered(build: GraphBuilder) -> tuple[Terms, dict[NodeId, Access]]:
    terms = Terms()
    graph = build.graph()
    return terms, dict(lower(graph.nodes, graph.mesh.size, as_leaves(graph, terms, ""), terms).accesses)


def _same(terms: Terms, one: Access, other: Access) -> bool:
    classes = Classes(terms, [*terms.numbers()])
    return one.index == other.index and classes.of(one.term) == classes.of(other.term)


def test_commuted_operands_and_what_is_computed_of_them_are_equal() -> None:
    build = GraphBuilder("g")
    x, y = build.input("x", "f32", (2, 3)), build.input("y", "f32", (2, 3))
    pairs = [(build.add(op, x, y), build.add(op, y, x)) for op in ("max", "add", "mul", "sub", "atan2")]
    deeper = [tuple(build.add("tanh", build.add("abs", side)) for side in pair) for pair in pairs]
    terms, accesses = _lowered(build)
    assert [_same(terms, accesses[a], accesses[b]) for a, b in deeper] == [True, True, True, False, False]


def test_a_combination_over_ranks_and_a_fold_of_a_fold_are_one_fold() -> None:
    build = GraphBuilder("g", mesh=TP)
    x = build.input("x", "f32", (2, 3))
    combined = build.add("all_reduce", x, kind="max", groups=groups_along(TP, ("tp",)))
    nested = build.add("reduce", build.add("reduce", x, kind="max", axes=(0,)), kind="max", axes=(0,))
    terms, accesses = _lowered(build)
    forms = [
        {(form.op, form.reduced) for form in forms_of(terms, accesses[node].term)}
        for node in (combined, nested)
    ]
    assert forms == [{("over_ranks:max:((1, 2),)", 0), ("max", 1)}, {("max", 1), ("max", 2)}]


def test_digits_of_unlike_radices_have_no_form_as_a_fold() -> None:
    """What is gathered over thirds of six ranks is no fold over the even ones; the term stays as it is."""
    mesh = Mesh(axes=(("dp", 2), ("tp", 3)))
    build = GraphBuilder("g", mesh=mesh)
    x = build.input("x", "f32", (2,))
    gathered = build.add("all_gather", x, dim=0, groups=groups_along(mesh, ("tp",)))
    combined = build.add("all_reduce", gathered, kind="sum", groups=((0, 2, 4), (1, 3, 5)))
    terms, accesses = _lowered(build)
    assert [form.op for form in forms_of(terms, accesses[combined].term)] == ["over_ranks:sum:((2, 3),)"]


def test_every_form_of_a_term_means_the_same() -> None:
    """Other forms are added as terms, in place, and computed."""
    for seed in range(60):
        graph = algebra_graph(seed)
        terms = Terms()
        lower(graph.nodes, graph.mesh.size, as_leaves(graph, terms, ""), terms)
        inputs = values_for(graph, np.random.default_rng(seed))
        wanted = [(number, form) for number in terms.numbers() for form in forms_of(terms, number)[1:]]
        added = [(number, terms.add(form)) for number, form in wanted]
        values = Values(terms, Leaves(graph, inputs), NodeBlocks(graph))
        for number, form in added:
            space = terms[number].space
            own, other = (_whole(values, terms, term, space) for term in (number, form))
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)


def test_terms_that_are_noted_as_equal_mean_the_same() -> None:
    noted = 0
    for seed in range(120):
        graph = algebra_graph(seed)
        terms = Terms()
        lower(graph.nodes, graph.mesh.size, as_leaves(graph, terms, ""), terms)
        inputs = values_for(graph, np.random.default_rng(seed))
        values = Values(terms, Leaves(graph, inputs), NodeBlocks(graph))
        for number, others in terms.equal.items():
            for other in others:
                noted += 1
                space = terms[number].space
                assert terms[other].space == space
                own, its = (_whole(values, terms, term, space) for term in (number, other))
                np.testing.assert_allclose(own, its, rtol=1e-7, atol=1e-9)
    assert noted > 5


def _whole(values: Values, terms: Terms, term: TermId, space: tuple[int, ...]) -> np.ndarray:
    return values.of(Access(terms.leaf("any", space).index, term))
