"""Files that anybody may have written: one clear error, bounded, and nothing of them is run."""

import json
import pickle
import random
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from torch_archives import Json, archive, call, graph_of, model, ref, relu_model, tensor

from scalify.errors import InvalidGraph, ScalifyError, UnsupportedFormat
from scalify.load.torch_export import read


def test_a_program_written_by_hand_is_read(tmp_path: Path) -> None:
    graph = read(archive(tmp_path / "relu.pt2", relu_model()))

    assert [node.op for node in graph.nodes] == ["input", "relu"]


def missing(*path: str) -> Callable[[Json], None]:
    """Removes one field."""

    def damage(content: Json) -> None:
        place = content
        for name in path[:-1]:
            place = place[name]
        del place[path[-1]]

    return damage


def _unknown_value(content: Json) -> None:
    graph_of(content)["nodes"][0]["inputs"][0]["arg"] = ref("nowhere")


def _used_before_made(content: Json) -> None:
    graph_of(content)["nodes"][0]["inputs"][0]["arg"] = ref("relu")


def _wrong_shape(content: Json) -> None:
    graph_of(content)["tensor_values"]["relu"] = tensor(3, 2)


def _huge_shape(content: Json) -> None:
    graph_of(content)["tensor_values"]["x"] = tensor(2**40, 2**40)


def _negative_size(content: Json) -> None:
    graph_of(content)["tensor_values"]["x"] = tensor(-1, 3)


def _not_a_list(content: Json) -> None:
    graph_of(content)["nodes"] = {"0": 1}


def _two_kinds(content: Json) -> None:
    graph_of(content)["nodes"][0]["inputs"][0]["arg"] = {"as_int": 1, "as_none": True}


def _boolean_size(content: Json) -> None:
    graph_of(content)["tensor_values"]["x"] = tensor({"as_int": True}, 3)


@pytest.mark.parametrize(
    "damage",
    [
        missing("graph_module"),
        missing("graph_module", "graph"),
        missing("graph_module", "signature"),
        missing("graph_module", "graph", "tensor_values"),
        _unknown_value,
        _used_before_made,
        _wrong_shape,
        _huge_shape,
        _negative_size,
        _not_a_list,
        _two_kinds,
        _boolean_size,
    ],
)
def test_a_damaged_graph_is_one_error(damage: Callable[[Json], None], tmp_path: Path) -> None:
    content = relu_model()
    damage(content)

    with pytest.raises(InvalidGraph) as caught:
        read(archive(tmp_path / "damaged.pt2", content))
    assert "\n" not in str(caught.value)


def test_any_field_may_hold_anything(tmp_path: Path) -> None:
    """Fields replaced at random: read or refused, never a crash."""
    chance = random.Random(0)
    junk = (None, True, -1, 2**70, 1.5, "x", [], {}, [[]], {"as_int": 1}, {"as_tensor": 3}, {"name": "x"})
    for _ in range(300):
        content = relu_model()
        places = list(_places(content))
        holder, key = chance.choice(places)
        holder[key] = chance.choice(junk)
        path = archive(tmp_path / "junk.pt2", content)
        try:
            read(path)
        except ScalifyError as error:
            assert str(error)


def _places(value: Any) -> Iterator[tuple[Any, str | int]]:
    """Every field of nested JSON, as what holds it and where."""
    entries: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        entries = cast("dict[str | int, Any]", value).items()
    elif isinstance(value, list):
        entries = enumerate(cast("list[Any]", value))
    for key, inner in list(entries):
        yield value, key
        yield from _places(inner)


def test_symbolic_sizes_are_refused_with_what_to_do(tmp_path: Path) -> None:
    content = relu_model()
    graph_of(content)["tensor_values"]["x"] = tensor({"as_expr": {"expr_str": "s0"}}, 3)

    with pytest.raises(UnsupportedFormat, match="symbolic") as caught:
        read(archive(tmp_path / "symbolic.pt2", content))
    assert "fixed shapes" in caught.value.hint


def test_deep_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidGraph, match="not JSON"):
        read(archive(tmp_path / "deep.pt2", "[" * 200_000 + "]" * 200_000))


def test_a_member_larger_than_it_says_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "bomb.pt2", relu_model())
    content = path.read_bytes()
    size = len(json.dumps(relu_model())).to_bytes(4, "little")
    path.write_bytes(content.replace(size, (8).to_bytes(4, "little")))

    with pytest.raises(InvalidGraph):
        read(path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("program/models/model.json", b" " * (200 * 2**20))

    with pytest.raises(InvalidGraph, match="at most"):
        read(path)


@pytest.mark.parametrize("kept", [0, 10, 100, -30])
def test_a_truncated_file_is_one_error(kept: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "whole.pt2", relu_model())
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(InvalidGraph, match="cannot be read as an archive"):
        read(path)


def test_more_nodes_than_are_read_is_one_error(tmp_path: Path) -> None:
    content = relu_model()
    graph_of(content)["nodes"] = [0] * 300_000

    with pytest.raises(InvalidGraph, match="300000 nodes"):
        read(archive(tmp_path / "huge.pt2", content))


class _Explodes:
    """Leaves a mark if it is ever unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


def test_pickles_inside_are_never_loaded(tmp_path: Path) -> None:
    mark = tmp_path / "exploded"
    bomb = pickle.dumps(_Explodes(mark))
    content = relu_model()
    spec = {"tensor_constant": {"arg": {"name": "x"}, "tensor_constant_name": "c"}}
    content["graph_module"]["signature"]["input_specs"] = [spec]
    payload = {"path_name": "c", "is_param": False, "use_pickle": True, "tensor_meta": tensor(2, 3)}
    others: dict[str, bytes | str] = {
        "data/constants/model_constants_config.json": json.dumps({"config": {"c": payload}}),
        "data/constants/c": bomb,
        "data/sample_inputs/model.pt": bomb,
    }

    graph = read(archive(tmp_path / "pickled.pt2", content, others))

    assert graph.nodes[0].op == "input"
    assert not mark.exists()


def test_a_constant_outside_its_storage_is_refused(tmp_path: Path) -> None:
    content = relu_model()
    spec = {"tensor_constant": {"arg": {"name": "x"}, "tensor_constant_name": "c"}}
    content["graph_module"]["signature"]["input_specs"] = [spec]
    payload = {"path_name": "c", "is_param": False, "use_pickle": False, "tensor_meta": tensor(2, 3)}
    others: dict[str, bytes | str] = {
        "data/constants/model_constants_config.json": json.dumps({"config": {"c": payload}}),
        "data/constants/c": b"\0" * 20,
    }

    with pytest.raises(InvalidGraph, match="outside its storage"):
        read(archive(tmp_path / "short.pt2", content, others))


def test_an_unknown_operator_is_opaque_and_named(tmp_path: Path) -> None:
    nodes = [call("mylib.mystery.default", "y", self=ref("x"), factor={"as_float": 2.0})]
    content = model(nodes, {"x": tensor(2), "y": tensor(2)}, output="y")

    graph = read(archive(tmp_path / "unknown.pt2", content))

    by_id = graph.by_id()
    result, left_behind = (by_id[output.value] for output in graph.outputs)
    assert (result.op, result.attrs["target"]) == ("opaque", "mylib.mystery.default")
    assert result.attrs["config"] == '{"factor": 2.0, "self": {"tensor": 0}}'
    # It may have written to what it was given, which an operator's name does not tell.
    assert (graph.outputs[1].alias, left_behind.op) == ("x", "opaque")


def test_a_collective_of_an_unknown_group_is_opaque(tmp_path: Path) -> None:
    arguments = {"input": ref("x"), "reduce_op": {"as_string": "sum"}, "group_name": {"as_string": "7"}}
    content = model(
        [call("_c10d_functional.all_reduce.default", "y", **arguments)],
        {"x": tensor(2), "y": tensor(2)},
        output="y",
    )

    assert read(archive(tmp_path / "group.pt2", content)).nodes[-1].op == "opaque"


def test_groups_that_do_not_cut_up_the_mesh_are_refused(tmp_path: Path) -> None:
    beside = {
        "schema": "scalify.capture",
        "version": 1,
        "mesh": [["tp", 4]],
        "rank": 0,
        "groups": {"7": [[0, 1], [1, 3]]},
    }

    with pytest.raises(InvalidGraph, match="no partition"):
        read(archive(tmp_path / "groups.pt2", relu_model(), {"extra/scalify.json": json.dumps(beside)}))


def test_a_capture_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    beside = json.dumps({"schema": "scalify.capture", "version": 99})

    with pytest.raises(UnsupportedFormat, match="newer"):
        read(archive(tmp_path / "newer.pt2", relu_model(), {"extra/scalify.json": beside}))
