"""Models from elsewhere: what is damaged, too large or not read is one clear refusal, never a guess."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import InvalidGraph, ScalifyError, UnsupportedFormat
from scalify.load import load
from scalify.load.onnx import read

onnx = pytest.importorskip("onnx", reason="the onnx package makes the models")
helper = pytest.importorskip("onnx.helper")


def model(
    nodes: Sequence[Any],
    *,
    shape: Sequence[int | str] = (2, 3),
    functions: Sequence[Any] = (),
    opset: int = 18,
    stored: Sequence[Any] = (),
    values: Sequence[Any] = (),
) -> Any:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, list(shape))
    y = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph(nodes, "g", [x], [y], list(stored), value_info=list(values))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions))


def function(name: str, nodes: Sequence[Any]) -> Any:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    return helper.make_function("mine", name, ["p"], ["q"], nodes, opsets)


def node(op: str, inputs: Sequence[str] = ("x",), outputs: Sequence[str] = ("y",), **more: Any) -> Any:
    return helper.make_node(op, list(inputs), list(outputs), **more)


def refusal(made: Any) -> str:
    with pytest.raises((InvalidGraph, UnsupportedFormat)) as caught:
        read(made.SerializeToString())
    return str(caught.value)


def test_a_file_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    place = tmp_path / "model.bin"
    place.write_bytes(model([node("Relu")]).SerializeToString())
    assert [made.op for made in load(place).nodes] == ["input", "relu"]


def test_values_and_their_order_are_checked() -> None:
    assert "which no node before it computes" in refusal(model([node("Relu", ["z"])]))
    assert "two values are called 'y'" in refusal(model([node("Relu"), node("Exp")]))
    assert "computed by no node" in refusal(model([node("Relu", outputs=["z"])]))


def test_shapes_have_to_be_fixed() -> None:
    assert "of any size" in refusal(model([node("Relu")], shape=("batch", 3)))


def test_control_flow_is_refused_by_name() -> None:
    branch = helper.make_graph([node("Relu", outputs=["z"])], "b", [], [])
    made = node("If", ["x"], then_branch=branch, else_branch=branch)
    assert "If, Loop, Scan" in refusal(model([made]))


def test_an_old_operator_set_is_refused() -> None:
    assert "opset 9" in refusal(model([node("Relu")], opset=9))


def test_an_unknown_operator_needs_a_stated_type_and_is_opaque() -> None:
    strange = node("Strange", domain="com.lab", factor=2.0)
    assert "does not state the type of 'y'" in refusal(model([strange]))
    made = model([strange])
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 3]))
    last = read(made.SerializeToString()).nodes[-1]
    assert last.attrs["target"] == "onnx.com.lab.Strange"
    assert last.attrs["config"] == '{"": [{"tensor": 0}], "factor": 2.0}'


def test_an_attribute_that_is_not_known_makes_a_node_opaque() -> None:
    """A newer release may have given it a meaning."""
    made = model([node("Softmax", axis=-1, temperature=2.0)])
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 3]))
    assert read(made.SerializeToString()).nodes[-1].op == "opaque"


def test_a_stated_shape_that_cannot_be_is_refused() -> None:
    wrong = helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [3, 3])
    assert "is said to give f32[3, 3]" in refusal(
        model([node("Relu", outputs=["z"]), node("Exp", ["z"])], values=[wrong])
    )


def test_a_function_is_written_out_where_it_is_called() -> None:
    twice = function("Twice", [node("Add", ["p", "p"], ["r"]), node("Exp", ["r"], ["q"])])
    graph = read(model([node("Twice", domain="mine")], functions=[twice]).SerializeToString())
    assert [made.op for made in graph.nodes] == ["input", "add", "exp"]


def test_functions_that_call_themselves_or_unfold_without_end_are_refused() -> None:
    loop = function("Loops", [node("Loops", ["p"], ["q"], domain="mine")])
    assert "calls itself" in refusal(model([node("Loops", domain="mine")], functions=[loop]))
    wide = [
        function(
            f"F{depth}",
            [
                node(f"F{depth + 1}", ["p" if i == 0 else f"r{i - 1}"], [f"r{i}"], domain="mine")
                for i in range(30)
            ]
            + [node("Identity", ["r29"], ["q"])],
        )
        for depth in range(6)
    ]
    wide.append(function("F6", [node("Relu", ["p"], ["q"])]))
    assert "unfolds beyond measure" in refusal(model([node("F0", domain="mine")], functions=wide))


def test_values_in_another_file_are_not_looked_for(tmp_path: Path) -> None:
    """A weight becomes an input all the same; a constant of a node cannot."""
    weight = onnx.numpy_helper.from_array(np.zeros((3, 3), np.float32), "lin.weight")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../../etc/secret")
    made = model([node("MatMul", ["x", "lin.weight"])], stored=[weight])
    assert [one.attrs["name"] for one in read(made.SerializeToString()).inputs()] == ["x", "lin.weight"]
    constant = model([node("Constant", [], ["c"], value=weight), node("MatMul", ["x", "c"])])
    assert "lie in another file" in refusal(constant)


def test_a_tensor_of_fewer_bytes_than_its_shape_says_is_refused() -> None:
    weight = onnx.numpy_helper.from_array(np.zeros((3, 3), np.float32), "w")
    weight.dims[0] = 4_000_000_000
    assert "bytes for" in refusal(model([node("MatMul", ["x", "w"])], stored=[weight]))


def test_fields_that_are_not_known_are_refused() -> None:
    data = model([node("Relu")]).SerializeToString()
    strange = bytes([0xF8, 0x07, 0x01])  # field 127, a number
    with pytest.raises(UnsupportedFormat, match="field 127"):
        read(data + strange)


def test_reshapes_that_do_not_fit_are_refused() -> None:
    for target in ([7], [-1, -1], [4, -1], [0, 0, 0]):
        shape = onnx.numpy_helper.from_array(np.array(target, np.int64), "val_1")
        assert "Reshape" in refusal(model([node("Reshape", ["x", "val_1"])], stored=[shape]))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_flipped_byte_is_read_or_refused_and_never_a_crash(data: st.DataObject) -> None:
    weight = onnx.numpy_helper.from_array(np.ones((3, 4), np.float32), "lin.weight")
    shape = onnx.numpy_helper.from_array(np.array([2, 2, 2], np.int64), "val_1")
    nodes = [node("MatMul", ["x", "lin.weight"], ["z"]), node("Reshape", ["z", "val_1"])]
    whole = bytearray(model(nodes, stored=[weight, shape]).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ScalifyError):
        read(bytes(whole))
