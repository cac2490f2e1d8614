# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

import numpy as np
from graphs import Graph

from magneton.match.classes import Classes, classify
from magneton.match.wiring import wire
from magneton.workload import CALL

x0 = np.random.default_rng(0).standard_normal((8, 16))


def classes_of(graph: Graph) -> Classes:
    return classify(wire(graph.profile(), CALL))


def test_layouts_share_a_class_and_its_root():
    graph = Graph()
    x = graph.input("x", x0)
    turned = graph.op("copy", np.ascontiguousarray, graph.view("t", np.transpose, x))
    classes = classes_of(graph)
    assert classes.of[turned.value_id] == classes.of[x.value_id]
    assert classes.roots[classes.of[x.value_id]] == ((x.value_id,),)


def test_a_mean_and_the_mean_plus_epsilon_stay_apart():
    graph = Graph()
    x = graph.input("x", x0)
    mean = graph.op("mean", lambda a: np.square(a).mean(-1) + np.arange(8), x)
    shifted = graph.op("add", lambda a: a + 1e-4, mean)
    classes = classes_of(graph)
    assert classes.of[mean.value_id] != classes.of[shifted.value_id]


def test_the_crop_of_a_pad_is_a_generation_of_its_own():
    graph = Graph()
    x = graph.input("x", x0)
    padded = graph.op("pad", lambda a: np.pad(a, ((0, 4), (0, 0))), x)
    cropped = graph.view("slice", lambda a: a[:8], padded)
    classes = classes_of(graph)
    assert classes.roots[classes.of[x.value_id]] == ((x.value_id,), (cropped.value_id,))


def test_a_cast_to_another_floating_type_keeps_the_class_and_a_function_that_casts_does_not():
    graph = Graph()
    x = graph.input("x", x0.astype(np.float32))
    half = graph.op("to", lambda a: a.astype(np.float16), x)
    other = graph.op("tanh", lambda a: np.tanh(a).astype(np.float16), x)
    classes = classes_of(graph)
    assert classes.of[half.value_id] == classes.of[x.value_id]
    assert classes.of[other.value_id] != classes.of[x.value_id]


def test_a_block_that_adds_nothing_starts_a_generation():
    graph = Graph()
    x = graph.input("x", x0)
    nothing = graph.op("zero_mm", lambda a: a * 0.0, x)
    y = graph.op("add", np.add, x, nothing)
    classes = classes_of(graph)
    assert classes.of[y.value_id] == classes.of[x.value_id]
    assert classes.generation[y.value_id] == 1


def test_identical_branches_are_roots_of_one_generation():
    graph = Graph()
    x = graph.input("x", x0)
    one, other = graph.op("tanh", np.tanh, x), graph.op("tanh", np.tanh, x)
    classes = classes_of(graph)
    assert classes.roots[classes.of[one.value_id]] == ((one.value_id, other.value_id),)


def test_equal_masks_computed_apart_are_classes_apart():
    graph = Graph()
    one, other = (graph.op("tri", lambda: np.tri(8)) for _ in range(2))
    classes = classes_of(graph)
    assert classes.of[one.value_id] != classes.of[other.value_id]


def test_what_memory_happened_to_hold_and_unused_results_are_no_values():
    graph = Graph()
    x = graph.input("x", x0)
    (empty,) = graph.ops("empty", lambda: (x0 * 3,), effect="alloc")
    used, unused = graph.ops("norm", lambda a: (a * 2, a.mean(-1)), x)
    graph.op("add", np.add, used, empty)
    classes = classes_of(graph)
    assert empty.value_id not in classes.of
    assert unused.value_id not in classes.of
    assert used.value_id in classes.of
