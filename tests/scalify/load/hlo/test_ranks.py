"""Collectives: which ranks take part, under each way of numbering them, and what they then compute."""

import numpy as np
import pytest
from hlo_texts import array, combiner, loaded, module, run

from scalify.errors import InvalidGraph, ScalifyError
from scalify.ir.graph import Graph, Node
from scalify.ir.mesh import SINGLE, Mesh, RankInt

SUM = combiner("add")
X = "%x = f32[4] parameter(0)"


def collective(graph: Graph) -> Node:
    (found,) = (node for node in graph.nodes if "groups" in node.attrs or "pairs" in node.attrs)
    return found


def all_reduce(attributes: str, header: str = "") -> str:
    return module(
        X, f"%r = f32[4] all-reduce(%x), {attributes}, to_apply=%combine", before=SUM, header=header
    )


@pytest.mark.parametrize(
    ("attributes", "header", "groups"),
    [
        ("replica_groups={{0,1},{2,3}}", "", ((0, 1), (2, 3))),
        ("replica_groups={{3,1},{2,0}}", "", ((3, 1), (2, 0))),
        ("replica_groups=[2,2]<=[4]", "", ((0, 1), (2, 3))),
        ("replica_groups=[2,2]<=[2,2]T(1,0)", "", ((0, 2), (1, 3))),
        ("replica_groups={}", ", replica_count=4", ((0, 1, 2, 3),)),
        # Without a channel ids are replicas, in each partition apart.
        ("replica_groups={{0,1}}", ", replica_count=2, num_partitions=2", ((0, 2), (1, 3))),
        # With one they are replicas and all their partitions, or ranks.
        ("replica_groups={{0,1}}, channel_id=1", ", replica_count=2, num_partitions=2", ((0, 1, 2, 3),)),
        ("replica_groups={{0},{1}}, channel_id=1", ", replica_count=2, num_partitions=2", ((0, 1), (2, 3))),
        (
            "replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true",
            ", num_partitions=4",
            ((0, 3), (1, 2)),
        ),
        (
            "replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true",
            "",
            ((0, 3), (1, 2)),
        ),
    ],
)
def test_groups_of_ranks(attributes: str, header: str, groups: tuple[tuple[int, ...], ...]):
    node = collective(loaded(all_reduce(attributes, header)))
    assert node.attrs == {"kind": "sum", "groups": groups}


def test_the_mesh_is_what_the_module_states_or_its_groups_name():
    groups = "replica_groups={{0,1},{2,3}}"
    assert loaded(all_reduce(groups)).mesh == Mesh(axes=(("rank", 4),))
    assert loaded(all_reduce(groups, ", replica_count=4")).mesh == Mesh(axes=(("rank", 4),))
    both = loaded(all_reduce("replica_groups={{0,1}}", ", replica_count=2, num_partitions=3")).mesh
    assert both == Mesh(axes=(("replica", 2), ("partition", 3)))
    assert loaded(module(X, "%r = f32[4] negate(%x)")).mesh == SINGLE


@pytest.mark.parametrize(
    ("attributes", "header", "message"),
    [
        ("replica_groups={}", "", "does not say how many"),
        ("replica_groups={{0,1}}, channel_id=1", ", num_partitions=4", "a rank outside 0..3"),
        ("replica_groups={{0,9}}", ", replica_count=2", "a rank outside 0..1"),
        ("replica_groups=[2,3]<=[4]", "", "do not fit together"),
        ("replica_groups={{0,1}}", ", replica_count=2000000", "for 2000000 replicas"),
    ],
)
def test_groups_that_cannot_be(attributes: str, header: str, message: str):
    with pytest.raises(ScalifyError, match=message):
        loaded(all_reduce(attributes, header))


@pytest.mark.parametrize("groups", ["{{0,1},{2}}", "{{0,1},{0,2}}", "{{0,2}}"])
def test_groups_that_are_no_partition_have_no_meaning(groups: str):
    graph = loaded(all_reduce(f"replica_groups={groups}"))
    assert graph.nodes[-1].op == "opaque"
    assert str(graph.nodes[-1].attrs["config"]).startswith("rank-dependent of 3x1")


def test_an_unknown_combination_has_no_meaning():
    text = all_reduce("replica_groups={{0,1}}").replace(" add(", " power(")
    assert loaded(text).nodes[-1].op == "opaque"


def test_a_group_of_one_changes_nothing():
    graph = loaded(all_reduce("replica_groups={{0},{1}}"))
    assert [node.op for node in graph.nodes] == ["input"]
    assert graph.mesh.size == 2


def test_what_moves_between_ranks():
    x = [array(4, seed=rank) for rank in range(2)]
    gathered = run(module(X, "%r = f32[8] all-gather(%x), dimensions={0}, replica_groups={{0,1}}"), {"x": x})
    np.testing.assert_allclose(gathered[1], np.concatenate(x))
    scattered = run(
        module(
            X,
            "%r = f32[2] reduce-scatter(%x), dimensions={0}, replica_groups={{1,0}}, to_apply=%combine",
            before=SUM,
        ),
        {"x": x},
    )
    np.testing.assert_allclose(scattered[0], (x[0] + x[1])[2:])
    exchanged = run(module(X, "%r = f32[4] all-to-all(%x), dimensions={0}, replica_groups={{0,1}}"), {"x": x})
    np.testing.assert_allclose(exchanged[0], np.concatenate([x[0][:2], x[1][:2]]))
    moved = run(module(X, "%r = f32[4] collective-permute(%x), source_target_pairs={{0,1}}"), {"x": x})
    np.testing.assert_allclose(moved, [np.zeros(4), x[0]])
    spread = run(module(X, "%r = f32[4] collective-broadcast(%x), replica_groups={{1,0}}"), {"x": x})
    np.testing.assert_allclose(spread, [x[1], x[1]])


def test_an_exchange_of_a_tuple():
    x, y = [array(4, seed=rank) for rank in range(2)], [array(4, seed=9 + rank) for rank in range(2)]
    text = module(
        X,
        "%y = f32[4] parameter(1)",
        "%t = (f32[4], f32[4]) all-to-all(%x, %y), replica_groups={{0,1}}",
        "%r = f32[4] get-tuple-element(%t), index=1",
    )
    found = run(text, {"x": x, "y": y})
    np.testing.assert_allclose(found, [x[1], y[1]])


def test_several_operands_travel_apart():
    text = module(
        X,
        "%y = f32[2] parameter(1)",
        "%t = (f32[4], f32[2]) all-reduce(%x, %y), replica_groups={{0,1}}, to_apply=%combine",
        "%r = f32[2] get-tuple-element(%t), index=1",
        before=SUM,
    )
    y = [array(2, seed=rank) for rank in range(2)]
    np.testing.assert_allclose(run(text, {"x": array(4), "y": y})[0], y[0] + y[1])


def test_a_start_and_its_done_are_one_collective():
    text = module(
        X,
        "%s = (f32[4], f32[8]) all-gather-start(%x), dimensions={0}, replica_groups={{0,1}}",
        "%g = f32[8] all-gather-done(%s)",
        "%q = f32[8] all-reduce-start(%g), replica_groups={{0,1}}, to_apply=%combine",
        "%r = f32[8] all-reduce-done(%q)",
        before=SUM,
    )
    assert [node.op for node in loaded(text).nodes] == ["input", "all_gather", "all_reduce"]


def test_an_asynchronous_call_is_inlined():
    wrapped = (
        "%wrapped (w: f32[4]) -> f32[8] {\n  %w = f32[4] parameter(0)\n"
        "  ROOT %w.g = f32[8] all-gather(%w), dimensions={0}, replica_groups={{0,1}}\n}\n"
    )
    text = module(
        X,
        "%s = ((f32[4]), f32[8], u32[]) async-start(%x), calls=%wrapped",
        "%r = f32[8] async-done(%s)",
        before=wrapped,
    )
    assert [node.op for node in loaded(text).nodes] == ["input", "all_gather"]


PARTITIONED = ", num_partitions=4"
SLICE = "%r = f32[2] dynamic-slice(%x8, %start), dynamic_slice_sizes={2}"
X8 = "%x8 = f32[8] parameter(0)"


@pytest.mark.parametrize(
    "start",
    [
        ("%p = u32[] partition-id()", "%two = u32[] constant(2)", "%start = u32[] multiply(%p, %two)"),
        (
            "%p = u32[] partition-id()",
            "%table = s32[4] constant({0, 2, 4, 6})",
            "%row = s32[1] dynamic-slice(%table, %p), dynamic_slice_sizes={1}",
            "%start = s32[] reshape(%row)",
        ),
        (
            "%p = u32[] partition-id()",
            "%s = s32[] convert(%p)",
            "%two = s32[] constant(2)",
            "%m = s32[] multiply(%s, %two)",
            "%far = s32[] constant(60)",
            "%start = s32[] minimum(%m, %far)",
        ),
    ],
)
def test_shards_found_by_the_rank_are_slices(start: tuple[str, ...]):
    graph = loaded(module(X8, *start, SLICE, header=PARTITIONED))
    (node,) = (node for node in graph.nodes if node.id == "r")
    assert node.op == "slice"
    assert node.attrs["starts"] == (RankInt(base=0, terms=((1, 4, 2),)),)
    x = array(8)
    found = run(module(X8, *start, SLICE, header=PARTITIONED), {"x8": x})
    np.testing.assert_allclose(found, x.reshape(4, 2))


def test_shards_that_are_not_affine_stay_dynamic():
    table = (
        "%p = u32[] partition-id()",
        "%table = s32[4] constant({6, 2, 0, 4})",
        "%row = s32[1] dynamic-slice(%table, %p), dynamic_slice_sizes={1}",
        "%start = s32[] reshape(%row)",
    )
    x = array(8)
    text = module(X8, *table, SLICE, header=PARTITIONED)
    assert next(node for node in loaded(text).nodes if node.id == "r").op == "dynamic_slice"
    np.testing.assert_allclose(run(text, {"x8": x}), x.reshape(4, 2)[[3, 1, 0, 2]])


def test_the_rank_of_an_unstated_mesh_is_unknown():
    text = module("%r = u32[] partition-id()")
    assert loaded(text).nodes[0].op == "opaque"
    assert loaded(module("%r = u32[] partition-id()", header=", num_partitions=1")).nodes[0].op == "constant"


def test_replicas_and_partitions_count_apart():
    text = module("%r = u32[] replica-id()", header=", replica_count=2, num_partitions=3")
    assert [int(value) for value in run(text, {})] == [0, 0, 0, 1, 1, 1]
    text = module("%r = u32[] partition-id()", header=", replica_count=2, num_partitions=3")
    assert [int(value) for value in run(text, {})] == [0, 1, 2, 0, 1, 2]


def test_a_permutation_of_a_rank_outside_is_refused():
    text = module(
        X, "%r = f32[4] collective-permute(%x), source_target_pairs={{0,7}}", header=", replica_count=2"
    )
    with pytest.raises(InvalidGraph, match=r"a rank outside 0\.\.1"):
        loaded(text)
