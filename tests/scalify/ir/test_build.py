"""The builder: types inferred, defaults filled in, sites that name the caller's line."""

import inspect
from pathlib import Path

import pytest

from scalify.errors import InvalidGraph
from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Site, TensorType
from scalify.ir.mesh import Mesh, RankInt


def _line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_a_node_stands_where_it_was_added() -> None:
    build = GraphBuilder("g")
    x, at_input = build.input("x", "f32", (2,)), _line()
    build.constant(1.0, "f32")
    y, at_neg = build.add("neg", x), _line()
    nodes = build.graph().by_id()
    assert [nodes[node].site for node in (x, y)] == [
        Site(__file__, at_input, "test_a_node_stands_where_it_was_added"),
        Site(__file__, at_neg, "test_a_node_stands_where_it_was_added"),
    ]
    assert {Path(node.site.file).name for node in nodes.values() if node.site} == {"test_build.py"}


def test_a_stated_site_stack_and_scope_are_kept() -> None:
    site = Site("model.py", 3)
    build = GraphBuilder("g")
    with build.scope("model"), build.scope("layers.0"):
        build.input("x", "f32", (), site=site)
        build.add("neg", build.input("y", "f32", ()), site=site, stack=(site, site), scope="elsewhere")
    build.input("z", "f32", ())
    x, y, neg, z = build.graph().nodes
    assert (x.site, x.scope, y.scope, z.scope) == (site, "model.layers.0", "model.layers.0", "")
    assert (neg.site, neg.stack, neg.scope) == (site, (site, site), "elsewhere")


def test_types_are_inferred_and_defaults_filled_in() -> None:
    build = GraphBuilder("mlp", mesh=Mesh(axes=(("tp", 2),)))
    x = build.input("x", "f32", (4, 8))
    w = build.input("w", "bf16", (8, 16), role="parameter", position=1)
    y = build.add("einsum", x, w, spec="bi,io->bo")
    total = build.add("reduce", y, kind="sum", axes=(1,))
    half = build.add("cast", total, dtype="bf16")
    row = build.add("reshape", half, shape=(1, 4))
    own = build.add(
        "slice",
        row,
        starts=(0, RankInt(base=0, terms=((1, 2, 2),))),
        limits=(1, RankInt(base=2, terms=((1, 2, 2),))),
        steps=(1, 1),
    )
    build.output("own", own)
    graph = build.graph()
    assert [build.type(node) for node in (y, total, half, row, own)] == [
        TensorType("f32", (4, 16)),
        TensorType("f32", (4,)),
        TensorType("bf16", (4,)),
        TensorType("bf16", (1, 4)),
        TensorType("bf16", (1, 2)),
    ]
    assert graph.by_id()[total].attrs["keepdims"] is False
    assert dict(graph.by_id()[w].attrs) == {"name": "w", "role": "parameter", "position": 1}
    assert [node.id for node in graph.inputs()] == ["x", "w"]


def test_a_declared_promotion_is_kept_if_its_kind_is_right() -> None:
    build = GraphBuilder("g")
    x = build.input("x", "f32", (4,))
    assert build.type(build.add("add", x, x, dtype="bf16")) == TensorType("bf16", (4,))
    with pytest.raises(InvalidGraph, match="add gives float, but i64 is stated"):
        build.add("add", x, x, dtype="i64")


def test_ids_are_free_or_refused() -> None:
    build = GraphBuilder("g")
    x = build.input("neg_2", "f32", ())
    build.add("neg", x, id="n")
    second = build.add("neg", x)
    assert second not in ("neg_2", "n")
    with pytest.raises(InvalidGraph, match="'n' already"):
        build.add("neg", x, id="n")


def test_what_is_wrong_is_refused_as_it_is_added() -> None:
    build = GraphBuilder("g")
    x = build.input("x", "f32", (4,))
    with pytest.raises(InvalidGraph, match="no op 'nog'"):
        build.add("nog", x)
    with pytest.raises(InvalidGraph, match="no node 'y' yet"):
        build.add("neg", type(x)("y"))
    with pytest.raises(InvalidGraph, match="needs its type stated"):
        build.add("reshape", x)
    build.output("x", x)
    build.output("x", x)
    with pytest.raises(InvalidGraph, match="two outputs 'x'"):
        build.graph()
