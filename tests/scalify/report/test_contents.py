"""A graph in short."""

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph, Site
from scalify.ir.mesh import Mesh
from scalify.report.contents import Ops, Value, contents_of


def graph() -> Graph:
    build = GraphBuilder("mlp", mesh=Mesh(axes=(("dp", 2), ("tp", 4))))
    x = build.input("x", "f32", (4, 8))
    w = build.input("w", "f32", (4, 8), role="parameter")
    total = build.add("add", build.add("add", x, w), w)
    odd = build.add("opaque", total, target="vendor.fused", config="", dtype="f32", shape=(4, 8))
    build.output("y", odd)
    return build.graph()


def test_ops_are_counted_and_those_without_meaning_are_called_what_they_were():
    contents = contents_of(graph())
    assert contents.nodes == 5
    assert contents.ops == (
        Ops(op="input", count=2, has_meaning=True),
        Ops(op="add", count=2, has_meaning=True),
        Ops(op="vendor.fused", count=1, has_meaning=False),
    )


def test_inputs_outputs_and_ranks_are_named():
    contents = contents_of(graph())
    assert [(axis.name, axis.size) for axis in contents.mesh] == [("dp", 2), ("tp", 4)]
    assert contents.inputs[1] == Value(name="w", dtype="f32", shape=(4, 8), role="parameter")
    assert contents.outputs == (Value(name="y", dtype="f32", shape=(4, 8)),)


def test_lines_of_source_are_counted():
    build = GraphBuilder("x")
    x = build.input("x", "f32", (), site=Site("m.py", 1))
    build.output("x", x)
    assert contents_of(build.graph()).with_site == 1
