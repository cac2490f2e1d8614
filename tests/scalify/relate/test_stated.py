"""Stated relations: what the file may say, what it means, and what does not fit is refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from related import Array, cutting, held, mesh_of, numbered, shards, taking

from scalify.errors import InvalidRelations
from scalify.ir.graph import Graph, NodeId
from scalify.ir.mesh import SINGLE, Mesh
from scalify.layout.maps import Shape
from scalify.relate.model import InputRelation
from scalify.relate.relate import relate
from scalify.relate.stated import (
    Stated,
    StatedInput,
    StatedOutput,
    StatedPart,
    StatedSplit,
    Window,
    parse_stated,
    read_stated,
)

RESULTS: dict[str, Shape] = {"y": (8,)}


def takes(inputs: dict[str, Shape], mesh: Mesh = SINGLE, results: dict[str, Shape] = RESULTS) -> Graph:
    return taking(inputs, mesh, results=results)


def related(text: str, baseline: Graph, candidate: Graph, name: str = "w") -> InputRelation:
    relations = relate(baseline, candidate, parse_stated(text))
    (found,) = (relation for relation in relations.inputs if relation.name == name)
    return found


def read(relation: InputRelation, **wholes: Array) -> Array:
    return held(relation, {NodeId(name): whole for name, whole in wholes.items()})


def test_all_a_file_may_say() -> None:
    stated = parse_stated(
        """
        [mesh]
        dp = 2
        tp = 4
        [inputs.wq]
        baseline = "attn.wq"
        shard = { dim = 0, axes = ["tp"] }
        [inputs."layers.0.norm"]
        replicated = true
        [inputs.same]
        [inputs.kv]
        shard = [{ dim = 1, axes = ["tp"], blocks = 2 }, { dim = 0, axes = ["dp"] }]
        [inputs.fused]
        axis = 1
        parts = [
          { baseline = "a" },
          { baseline = "b", window = { start = 2, size = 3 }, shard = { dim = 1, axes = ["dp", "tp"] } },
        ]
        [outputs.logits]
        baseline = "scores"
        shard = { dim = 2, axes = ["tp"] }
        [outputs.loss]
        """
    )
    tp, dp = StatedSplit(dim=0, axes=("tp",)), StatedSplit(dim=0, axes=("dp",))
    assert stated == Stated(
        mesh=Mesh(axes=(("dp", 2), ("tp", 4))),
        inputs=(
            StatedInput(candidate="wq", parts=(StatedPart(baseline="attn.wq", splits=(tp,)),)),
            StatedInput(candidate="layers.0.norm", parts=(StatedPart(baseline="layers.0.norm", splits=()),)),
            StatedInput(candidate="same", parts=(StatedPart(baseline="same"),)),
            StatedInput(
                candidate="kv",
                parts=(StatedPart(baseline="kv", splits=(StatedSplit(dim=1, axes=("tp",), blocks=2), dp)),),
            ),
            StatedInput(
                candidate="fused",
                axis=1,
                parts=(
                    StatedPart(baseline="a", splits=()),
                    StatedPart(
                        baseline="b",
                        splits=(StatedSplit(dim=1, axes=("dp", "tp")),),
                        window=Window(dim=1, start=2, size=3),
                    ),
                ),
            ),
        ),
        outputs=(
            StatedOutput(candidate="logits", baseline="scores", splits=(StatedSplit(dim=2, axes=("tp",)),)),
            StatedOutput(candidate="loss", baseline="loss"),
        ),
    )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("inputs = 3", "inputs is 3, not a table", "{"),
        ("[input.w]", "'input' is not known", "'inputs'"),
        ("[inputs.w]\nbaselin = 'a'", "'baselin'", "'baseline'"),
        ("[inputs.w]\nreplicated = false", "replicated is true or left out", "one"),
        ("[inputs.w]\nreplicated = true\nshard = {dim=0, axes=['tp']}", "replicated", "one"),
        ("[inputs.w]\nshard = {dim=0, axis=['tp']}", "'axis' is not known", "'axes'"),
        ("[inputs.w]\nshard = {axes=['tp']}", "shard has no dim", "dim = 0"),
        ("[inputs.w]\nshard = {dim=0, axes=[]}", "is empty or repeats", "once"),
        ("[inputs.w]\nshard = {dim=0, axes=['tp', 'tp']}", "is empty or repeats", "once"),
        ("[inputs.w]\nshard = {dim=-1, axes=['tp']}", "dim is -1", "0 or more"),
        ("[inputs.w]\nshard = {dim=true, axes=['tp']}", "dim is True", "0 or more"),
        ("[inputs.w]\nshard = {dim=0, axes='tp'}", "axes is 'tp', not an array", "["),
        ("[inputs.w]\naxis = 0", "axis is that of parts", "leave"),
        ("[inputs.w]\nparts = []", "has no parts", "baseline"),
        ("[inputs.w]\nparts = [{replicated=true}]", "part 1 names no baseline", "baseline"),
        ("[inputs.w]\nbaseline = 'a'\nparts = [{baseline='a'}]", "'baseline' is not known", "parts"),
        ("[inputs.w]\nwindow = {start=1}", "window has no size", "size"),
        ("[inputs.w]\nbaseline = 3", "baseline is 3, not text", "quotes"),
        ("[outputs.y]\nwindow = {start=1, size=1}", "'window' is not known", "there are"),
        ("[mesh]\ntp = 0", "mesh axis 'tp' is 0", "1 or more"),
        ("[inputs.w]\nshard = {dim=99999999999999999999999, axes=[" + "[" * 5000, "not valid TOML", "file"),
        ("x = " + "9" * 5000, "not valid TOML", "file"),
        ("[inputs", "not valid TOML", "file"),
    ],
)
def test_what_a_file_may_not_say(text: str, message: str, hint: str) -> None:
    with pytest.raises(InvalidRelations) as caught:
        parse_stated(text)
    assert message in str(caught.value)
    assert hint in caught.value.hint
    assert len(str(caught.value)) < 400


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_stated(text)
    except InvalidRelations as error:
        assert error.hint


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRelations, match="cannot read"):
        read_stated(tmp_path / "absent.toml")
    damaged = tmp_path / "damaged.toml"
    damaged.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidRelations, match=r"damaged\.toml is no text"):
        read_stated(damaged)
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[inputs.w]\nshards = 1\n")
    with pytest.raises(InvalidRelations, match=r"wrong\.toml: input 'w': key 'shards'") as caught:
        read_stated(wrong)
    assert caught.value.hint == "did you mean 'shard'?"


def test_what_is_stated_goes_before_what_would_be_inferred() -> None:
    mesh = mesh_of(dp=2, tp=2)
    baseline, candidate = takes({"w": (8,)}), takes({"w": (4,)}, mesh)
    relation = related("[inputs.w]\nshard = { dim = 0, axes = ['dp'] }", baseline, candidate)
    assert relation.stated
    assert relation.text == "dimension 0 sharded over dp"
    assert np.array_equal(read(relation, w=numbered((8,))), shards(numbered((8,)), mesh, {0: ("dp",)}))


def test_a_plain_shard_can_be_stated_of_a_weight_that_the_baseline_slices() -> None:
    baseline = cutting((12,), 0, [(0, 8), (8, 12)])
    candidate = takes({"w": (6,)}, mesh_of(tp=2), {"part0": (8,), "part1": (4,)})
    relation = related("[inputs.w]\nshard = { dim = 0, axes = ['tp'] }", baseline, candidate)
    assert read(relation, w=numbered((12,))).tolist() == numbered((2, 6)).tolist()


def test_stated_names_pair_and_the_rest_is_inferred() -> None:
    baseline = takes({"wa": (8,), "w": (3,)})
    candidate = takes({"w": (4,), "v": (3,)}, mesh_of(tp=2))
    stated = parse_stated("[inputs.w]\nbaseline = 'wa'")
    relations = relate(baseline, candidate, stated)
    assert not relations.undecided
    assert [(r.name, r.of, r.text, r.stated) for r in relations.inputs] == [
        ("w", ("wa",), "dimension 0 sharded over tp", True),
        ("v", ("w",), "replicated", False),
    ]


def test_several_inputs_fused_into_one() -> None:
    mesh = mesh_of(tp=2)
    baseline = takes({"wq": (8, 3), "wk": (4, 3), "wv": (4, 3)})
    candidate = takes({"w": (8, 3)}, mesh)
    tp = "shard = { dim = 0, axes = ['tp'] }"
    parts = ", ".join(f"{{ baseline = '{name}', {tp} }}" for name in ("wq", "wk", "wv"))
    relation = related(f"[inputs.w]\naxis = 0\nparts = [{parts}]", baseline, candidate)
    wholes = {"wq": numbered((8, 3)), "wk": numbered((4, 3)) + 100, "wv": numbered((4, 3)) + 200}
    expected = np.concatenate([shards(whole, mesh, {0: ("tp",)}) for whole in wholes.values()], axis=1)
    assert np.array_equal(read(relation, **wholes), expected)
    assert relation.of == ("wq", "wk", "wv")


def test_windows_of_one_input_with_replicated_heads() -> None:
    mesh = mesh_of(tp=4)
    text = """
    [inputs.w]
    axis = 1
    parts = [
      { baseline = "w", window = { start = 0, size = 8 }, shard = { dim = 1, axes = ["tp"] } },
      { baseline = "w", window = { start = 8, size = 2 }, shard = { dim = 1, axes = ["tp"], blocks = 2 } },
    ]
    """
    relation = related(text, takes({"w": (2, 10)}), takes({"w": (2, 3)}, mesh))
    whole = numbered((2, 10))
    expected = [
        np.concatenate([whole[:, 2 * r : 2 * r + 2], whole[:, [8 + r // 2]]], axis=1) for r in range(4)
    ]
    assert np.array_equal(read(relation, w=whole), np.stack(expected))


def test_an_input_split_into_several() -> None:
    baseline, candidate = takes({"w": (12,)}), takes({"a": (4,), "b": (8,)})
    stated = parse_stated(
        """
        inputs.a = { baseline = "w", window = { start = 0, size = 4 } }
        inputs.b = { baseline = "w", window = { start = 4, size = 8 } }
        """
    )
    relations = relate(baseline, candidate, stated)
    one, other = (read(relation, w=numbered((12,)))[0].tolist() for relation in relations.inputs)
    assert one + other == list(range(12))
    assert relations.unused == ()


def test_axes_of_ranks_that_are_only_counted_can_be_named() -> None:
    mesh = mesh_of(dp=2, tp=2)
    text = "[mesh]\ndp = 2\ntp = 2\n[inputs.w]\nshard = { dim = 0, axes = ['tp'] }"
    relation = related(text, takes({"w": (8,)}), takes({"w": (4,)}, mesh_of(rank=4)))
    assert np.array_equal(read(relation, w=numbered((8,))), shards(numbered((8,)), mesh, {0: ("tp",)}))


def test_a_stated_output_has_one_choice() -> None:
    mesh = mesh_of(dp=2, tp=2)
    baseline, candidate = takes({}, results={"a": (8,), "b": (8,)}), takes({}, mesh, {"x": (4,), "y": (8,)})
    text = "[outputs.x]\nbaseline = 'b'\nshard = { dim = 0, axes = ['tp'] }"
    stated, inferred = relate(baseline, candidate, parse_stated(text)).outputs
    assert (stated.baseline, stated.candidate) == ("b", "x")
    assert [name for name, _ in stated.choices] == ["dimension 0 sharded over tp"]
    assert (inferred.baseline, inferred.candidate) == ("a", "y")


TP = "shard = { dim = 0, axes = ['tp'] }"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[inputs.v]", "input of the candidate 'v'", "w"),
        ("[inputs.w]\nbaseline = 'ww'", "input of the baseline 'ww'", "did you mean 'w'?"),
        ("[inputs.w]\nshard = { dim = 0, axes = ['pp'] }", "mesh axis 'pp'", "'tp'"),
        (
            "[inputs.w]\nreplicated = true",
            "makes [8, 3] on every rank, and the candidate holds [4, 3]",
            "fit",
        ),
        ("[inputs.w]\nshard = { dim = 1, axes = ['tp'] }", "[8, 3] is not cut in 2 equal blocks", "fit"),
        ("[inputs.w]\nshard = { dim = 7, axes = ['tp'] }", "dimension 7", "fit"),
        (
            "[inputs.w]\nshard = { dim = 0, axes = ['tp'], blocks = 3 }",
            "3 blocks do not lie evenly",
            "divides",
        ),
        ("[inputs.w]\nshard = [{dim=0, axes=['tp']}, {dim=0, axes=['tp']}]", "is cut twice", "once"),
        (
            "[inputs.w]\nwindow = { start = 4, size = 8 }",
            "window 4:12 of dimension 0 is not within [8, 3]",
            "",
        ),
        (f"[inputs.w]\nwindow = {{ dim = 1, start = 0, size = 2 }}\n{TP}", "makes [4, 2] on every rank", ""),
        (
            "[inputs.w]\nwindow = { start = 0, size = 4 }",
            "only 12 of 24 elements of the baseline's 'w'",
            "rest",
        ),
        (
            f"[inputs.w]\n{TP}\n[inputs.u]\nbaseline = 'w'\nwindow = {{ start = 0, size = 8 }}\n{TP}",
            "'w' are stated twice",
            "once",
        ),
        ("[inputs.w]\naxis = 1\nparts = [{baseline='w'}, {baseline='u'}]", "[8, 3], [3] do not join", ""),
        (f"[inputs.i]\nbaseline = 'w'\n{TP}", "input 'i' is i64, the baseline's w is f32", "kind"),
        ("[mesh]\ntp = 3", "the stated mesh (tp 3) has not 2 ranks", "multiply"),
        ("[mesh]\nx = 2", "names of its own: tp 2", "leave [mesh] out"),
        ("[outputs.z]", "output of the candidate 'z'", "y"),
        ("[outputs.y]\nbaseline = 'z'", "output of the baseline that is left 'z'", "y"),
        ("[outputs.y]\nshard = { dim = 0, axes = ['tp'] }", "the candidate gives [8]", "fit"),
    ],
)
def test_what_does_not_fit_the_graphs_is_refused(text: str, message: str, hint: str) -> None:
    baseline = takes({"w": (8, 3), "u": (3,)})
    build_inputs: dict[str, Shape] = {"w": (4, 3), "u": (4, 3)}
    candidate = takes(build_inputs, mesh_of(tp=2))
    ids = taking({"i": (4, 3)}, mesh_of(tp=2), dtype="i64", results=RESULTS)
    with pytest.raises(InvalidRelations) as caught:
        relate(baseline, ids if "inputs.i" in text else candidate, parse_stated(text))
    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_axes_out_of_the_mesh_s_order_are_refused() -> None:
    text = "[inputs.w]\nshard = { dim = 0, axes = ['tp', 'dp'] }"
    with pytest.raises(InvalidRelations, match="do not stand in the mesh's order"):
        relate(takes({"w": (8,)}), takes({"w": (2,)}, mesh_of(dp=2, tp=2)), parse_stated(text))


def test_layouts_within_a_distributed_baseline_are_refused_and_names_are_not() -> None:
    mesh = mesh_of(tp=2)
    baseline, candidate = takes({"w": (4,)}, mesh), takes({"v": (4,)}, mesh)
    relations = relate(baseline, candidate, parse_stated("[inputs.v]\nbaseline = 'w'"))
    assert relations.inputs[0].of == ("w",)
    for text in ("[inputs.v]\nbaseline = 'w'\nreplicated = true", "[outputs.y]\nreplicated = true"):
        with pytest.raises(InvalidRelations, match="runs on 2 ranks itself"):
            relate(baseline, candidate, parse_stated(text))


def test_other_precision_of_a_stated_input_is_noted() -> None:
    candidate = taking({"w": (4,)}, mesh_of(tp=2), dtype="bf16", results=RESULTS)
    relations = relate(takes({"w": (8,)}), candidate, parse_stated(f"[inputs.w]\n{TP}"))
    assert "f32 in the baseline and bf16 are taken as the same values (w)" in relations.notes
