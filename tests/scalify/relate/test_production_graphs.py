"""The graphs of a production compiler stack: relations as its engineers would write them by hand."""

import pytest
from hlo_edits import neuron_graph

from scalify.load import load
from scalify.relate.relate import relate

REPLICATED = ("p0.1", "p1.2", "p2.3", "p3.4", "p4.5", "p5.6", "p8.9", "p11.12", "p15.16")
CACHES = ("p6.7", "p7.8")
MATRICES = ("p10.11", "p12.13", "p13.14", "p14.15", "p16.17")


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_one_layer(ranks: int) -> None:
    relations = relate(load(neuron_graph("tp1_layer1")), load(neuron_graph(f"tp{ranks}_layer1")))

    assert not relations.undecided
    assert not relations.unused
    said = {relation.name: relation.text for relation in relations.inputs}
    assert {said[name] for name in REPLICATED} == {"replicated"}
    assert {said[name] for name in CACHES} == {"dimension 2 sharded over rank"}
    assert {said[name] for name in MATRICES} == {"dimension 1 sharded over rank"}
    assert said["p9.10"] == "dimension 1 fused of 3 parts (2048, 512, 512), each sharded over rank"
    assert [output.choices[0][0] for output in relations.outputs] == [
        "dimension 0 sharded over rank",
        "dimension 2 sharded over rank",
        "dimension 2 sharded over rank",
    ]
    assert all(len(output.choices) == 1 for output in relations.outputs)


def test_eight_layers() -> None:
    relations = relate(load(neuron_graph("tp1_layer8")), load(neuron_graph("tp8_layer8")))
    assert not relations.undecided
    assert len(relations.inputs) == 80
    assert sum("fused of 3 parts (2048, 512, 512)" in relation.text for relation in relations.inputs) == 8


def test_other_numbers_of_layers_are_undecided() -> None:
    relations = relate(load(neuron_graph("tp1_layer1")), load(neuron_graph("tp2_layer8")))
    assert relations.undecided
    assert not relations.inputs
