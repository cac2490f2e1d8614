"""What a loaded node computes is what ONNX's own reference computes, operator by operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.load.onnx import read

onnx = pytest.importorskip("onnx", reason="the onnx package makes the models and says what they compute")
helper = pytest.importorskip("onnx.helper")
reference = pytest.importorskip("onnx.reference")

Array = NDArray[Any]
F, INT = np.float32, np.int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One node: shapes of float inputs or arrays, what is known at load, and attributes."""

    op: str
    inputs: tuple[tuple[int, ...] | Array, ...] = ()
    known: Mapping[int, Array] = field(default_factory=dict[int, Array])
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    opset: int = 18
    positive: bool = False

    @property
    def name(self) -> str:
        words = [self.op, str(self.opset), *(f"{k}={v}" for k, v in self.attributes.items())]
        return "-".join(words).replace(" ", "")


def _ints(*values: int) -> Array:
    return np.array(values, INT)


X = (2, 3, 4)
IMAGE = (2, 4, 6, 5)
UNARY = (
    "Neg", "Abs", "Exp", "Sin", "Cos", "Tan", "Tanh", "Atan", "Sigmoid", "Relu", "Erf", "Floor", "Ceil",
    "Round", "Sign", "Softplus", "Identity", "IsNaN", "IsInf", "HardSwish", "Mish", "Elu", "HardSigmoid",
    "LeakyRelu", "Reciprocal", "Softmax", "LogSoftmax", "GlobalAveragePool",
)  # fmt: skip
TRUTHS = (np.array([[True, False], [False, True]]), np.array([[True, True], [False, False]]))
PLACES = np.array([[0, 2, 1], [1, 0, -1]], INT)

CASES = (
    *(Case(op=op, inputs=(X,)) for op in UNARY),
    *(Case(op=op, inputs=(X,), positive=True) for op in ("Log", "Sqrt")),
    *(Case(op=op, inputs=(X, (3, 1))) for op in ("Add", "Sub", "Mul", "Div", "PRelu", "Max", "Min")),
    *(Case(op=op, inputs=(X, X)) for op in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")),
    *(Case(op=op, inputs=TRUTHS) for op in ("And", "Or", "Xor")),
    *(Case(op=op, inputs=(X, X, X)) for op in ("Sum", "Mean")),
    Case(op="GlobalMaxPool", inputs=(IMAGE,)),
    Case(op="Not", inputs=TRUTHS[:1]),
    Case(op="Pow", inputs=(X, (4,)), positive=True),
    Case(op="Div", inputs=(_ints(7, -7, 7, -7), _ints(2, 2, -2, -2))),
    Case(op="Mod", inputs=(_ints(7, -7, 7, -7), _ints(2, 2, -2, -2))),
    Case(op="Mod", inputs=(_ints(7, -7, 7, -7), _ints(2, 2, -2, -2)), attributes={"fmod": 1}),
    Case(op="BitShift", inputs=(np.array([1, 6], np.uint32), np.array([2, 1], np.uint32)),
         attributes={"direction": "LEFT"}),
    Case(op="Cast", inputs=(X,), attributes={"to": 7}),
    Case(op="Cast", inputs=(_ints(0, 3),), attributes={"to": 9}),
    Case(op="CastLike", inputs=(_ints(1, 2), (1,)), opset=19),
    Case(op="Where", inputs=(TRUTHS[0], (2, 2), (2, 2))),
    Case(op="Clip", inputs=(X, np.array(-0.5, F), np.array(0.5, F))),
    Case(op="Gelu", inputs=(X,), opset=20),
    Case(op="Gelu", inputs=(X,), opset=20, attributes={"approximate": "tanh"}),
    Case(op="Swish", inputs=(X,), opset=24, attributes={"alpha": 1.5}),
    Case(op="Dropout", inputs=(X,)),
    Case(op="Reshape", inputs=(X,), known={1: _ints(0, -1)}),
    Case(op="Reshape", inputs=(X,), known={1: _ints(4, 3, 2)}),
    Case(op="Flatten", inputs=(X,), attributes={"axis": 2}),
    Case(op="Squeeze", inputs=((1, 3, 1),), known={1: _ints(-1)}),
    Case(op="Squeeze", inputs=((1, 3, 1),)),
    Case(op="Unsqueeze", inputs=(X,), known={1: _ints(0, -1)}),
    Case(op="Transpose", inputs=(X,)),
    Case(op="Transpose", inputs=(X,), attributes={"perm": [1, 0, 2]}),
    Case(op="Expand", inputs=((3, 1),), known={1: _ints(2, 1, 4)}),
    Case(op="Concat", inputs=(X, X), attributes={"axis": -1}),
    Case(op="Split", inputs=(X,), attributes={"axis": 2, "num_outputs": 2}, outputs=2),
    Case(op="Split", inputs=(X,), attributes={"axis": 2, "num_outputs": 3}, outputs=3),
    Case(op="Split", inputs=(X,), known={1: _ints(1, 3)}, attributes={"axis": 2}, outputs=2),
    Case(op="Slice", inputs=((5, 6),), known={1: _ints(1, -1), 2: _ints(4, -100), 3: _ints(0, 1),
                                              4: _ints(2, -2)}),
    Case(op="Slice", inputs=((5, 6),), known={1: _ints(-2), 2: _ints(2**62), 3: _ints(1)}),
    Case(op="Slice", inputs=((5, 6),), known={1: _ints(3, 2), 2: _ints(1, 2)}),
    Case(op="Pad", inputs=((2, 3),), known={1: _ints(1, 0, 0, 2)}),
    Case(op="Pad", inputs=((2, 3),), known={1: _ints(0, 1, 2, 0), 2: np.array(1.5, F)}),
    Case(op="Tile", inputs=((2, 3),), known={1: _ints(2, 3)}),
    Case(op="Trilu", inputs=((3, 4),), known={1: np.array(1, INT)}),
    Case(op="Trilu", inputs=((3, 4),), attributes={"upper": 0}),
    Case(op="Shape", inputs=(X,), attributes={"start": 1}),
    Case(op="Shape", inputs=(X,), attributes={"start": -2, "end": -1}),
    Case(op="Size", inputs=(X,)),
    Case(op="DepthToSpace", inputs=((1, 8, 2, 3),), attributes={"blocksize": 2}),
    Case(op="DepthToSpace", inputs=((1, 8, 2, 3),), attributes={"blocksize": 2, "mode": "CRD"}),
    Case(op="SpaceToDepth", inputs=((1, 2, 4, 6),), attributes={"blocksize": 2}),
    Case(op="ConstantOfShape", known={0: _ints(2, 3)}),
    Case(op="Range", known={0: np.array(2, INT), 1: np.array(11, INT), 2: np.array(3, INT)}),
    Case(op="Range", known={0: np.array(0, F), 1: np.array(1, F), 2: np.array(0.25, F)}),
    Case(op="EyeLike", inputs=((3, 4),), attributes={"k": 1}),
    Case(op="MatMul", inputs=((2, 3, 4), (4, 5))),
    Case(op="MatMul", inputs=((2, 1, 3, 4), (5, 4, 6))),
    Case(op="MatMul", inputs=((1, 5, 3, 4), (2, 1, 4, 6))),
    Case(op="MatMul", inputs=((4,), (2, 4, 3))),
    Case(op="MatMul", inputs=((2, 3, 4), (4,))),
    Case(op="Gemm", inputs=((3, 4), (4, 5), (5,))),
    Case(op="Gemm", inputs=((4, 3), (5, 4), (3, 1)),
         attributes={"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
    Case(op="Einsum", inputs=((2, 3, 4), (2, 4, 5)), attributes={"equation": "bij, bjk -> bik"}),
    Case(op="Einsum", inputs=((2, 3, 4), (4, 5)), attributes={"equation": "...j,jk"}),
    *(Case(op=op, inputs=(X,), known={1: _ints(-1)}, attributes={"keepdims": 0})
      for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare",
                 "ReduceL1", "ReduceL2", "ReduceLogSumExp")),
    Case(op="ReduceMean", inputs=(X,), attributes={"axes": [1]}, opset=13),
    Case(op="ReduceSum", inputs=(X,)),
    Case(op="ReduceLogSum", inputs=(X,), known={1: _ints(1)}, positive=True),
    Case(op="ArgMax", inputs=(X,), attributes={"axis": -1, "keepdims": 0}),
    Case(op="ArgMin", inputs=(X,)),
    Case(op="CumSum", inputs=(X,), known={1: np.array(1, INT)}),
    Case(op="CumSum", inputs=(X,), known={1: np.array(-1, INT)}, attributes={"reverse": 1}),
    Case(op="TopK", inputs=((3, 6),), known={1: _ints(3)}, outputs=2),
    Case(op="TopK", inputs=((3, 6),), known={1: _ints(2)}, outputs=2, attributes={"largest": 0, "axis": 0}),
    Case(op="LayerNormalization", inputs=(X, (4,), (4,))),
    Case(op="LayerNormalization", inputs=(X, (3, 4)), attributes={"axis": 1, "epsilon": 0.1}, outputs=3),
    Case(op="RMSNormalization", inputs=(X, (4,)), opset=23),
    Case(op="GroupNormalization", inputs=(IMAGE, (4,), (4,)), attributes={"num_groups": 2}, opset=21),
    Case(op="InstanceNormalization", inputs=(IMAGE, (4,), (4,))),
    Case(op="BatchNormalization", inputs=(IMAGE, (4,), (4,), (4,), (4,)), positive=True),
    Case(op="Attention", inputs=((2, 4, 5, 3), (2, 2, 6, 3), (2, 2, 6, 3)), opset=23),
    Case(op="Attention", inputs=((2, 4, 5, 3), (2, 4, 5, 3), (2, 4, 5, 3)), opset=23,
         attributes={"is_causal": 1, "scale": 0.3}),
    Case(op="Attention", inputs=((2, 5, 12), (2, 6, 6), (2, 6, 6), (5, 6)), opset=23,
         attributes={"q_num_heads": 4, "kv_num_heads": 2}),
    Case(op="Attention", inputs=((2, 2, 3, 4), (2, 2, 1, 4), (2, 2, 1, 4), (3, 3), (2, 2, 2, 4),
                                 (2, 2, 2, 4)), opset=23, outputs=3),
    Case(op="RotaryEmbedding", inputs=((2, 3, 5, 8), (2, 5, 4), (2, 5, 4)), opset=23),
    Case(op="RotaryEmbedding", inputs=((2, 3, 5, 8), (2, 5, 2), (2, 5, 2)), opset=23,
         attributes={"interleaved": 1, "rotary_embedding_dim": 4}),
    Case(op="RotaryEmbedding", inputs=((2, 3, 8), (6, 2), (6, 2), np.array([[0, 2, 5], [1, 1, 3]], INT)),
         opset=23, attributes={"num_heads": 2}),
    Case(op="Gather", inputs=((4, 3), PLACES)),
    Case(op="Gather", inputs=((4, 3),), known={1: _ints(-1, 0)}, attributes={"axis": 1}),
    Case(op="GatherElements", inputs=((2, 4), PLACES), attributes={"axis": 1}),
    Case(op="GatherND", inputs=((4, 3, 2), np.array([[0, 2], [-1, 1]], INT))),
    Case(op="ScatterElements", inputs=((3, 4), PLACES, (2, 3)), attributes={"axis": 1}),
    Case(op="ScatterElements", inputs=((3, 4), PLACES, (2, 3)), attributes={"reduction": "add"}),
    Case(op="ScatterND", inputs=((4, 3), np.array([[1], [-1]], INT), (2, 3))),
    Case(op="ScatterND", inputs=((4, 3), np.array([[1, 0], [1, 0]], INT), (2,)),
         attributes={"reduction": "add"}),
    Case(op="OneHot", inputs=(PLACES,), known={1: np.array(3, INT), 2: np.array([-1, 2], F)},
         attributes={"axis": 1}),
    Case(op="Conv", inputs=(IMAGE, (6, 2, 3, 2), (6,)),
         attributes={"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1]}),
    Case(op="Conv", inputs=((1, 2, 7), (3, 2, 2)), attributes={"dilations": [2]}),
    Case(op="MaxPool", inputs=(IMAGE,), attributes={"kernel_shape": [3, 2], "strides": [2, 1]}),
    Case(op="MaxPool", inputs=(IMAGE,), attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    Case(op="AveragePool", inputs=(IMAGE,), attributes={"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}),
    Case(op="AveragePool", inputs=(IMAGE,),
         attributes={"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    Case(op="Resize", inputs=((1, 2, 3, 4),), known={3: _ints(1, 2, 6, 7)},
         attributes={"mode": "linear"}),
    Case(op="Resize", inputs=((1, 2, 3, 4),), known={2: np.array([1, 1, 2, 3], F)},
         attributes={"mode": "nearest", "nearest_mode": "floor",
                     "coordinate_transformation_mode": "asymmetric"}),
    Case(op="Resize", inputs=((1, 2, 3, 4),), known={3: _ints(1, 2, 5, 7)},
         attributes={"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
)  # fmt: skip


def _value(given: tuple[int, ...] | Array, random: np.random.Generator, positive: bool) -> Array:
    if not isinstance(given, tuple):
        return given
    value = random.normal(size=given).astype(F)
    return np.abs(value) + F(0.1) if positive else value


def model_of(case: Case, data: Mapping[str, Array]) -> Any:
    """The one-node model of a case; what is known at load is stored in it."""
    count = max([len(case.inputs), *(place + 1 for place in case.known)])
    names = [f"x{place}" if place < len(case.inputs) or place in case.known else "" for place in range(count)]
    node = helper.make_node(
        case.op, names, [f"y{place}" for place in range(case.outputs)], name="node", **case.attributes
    )
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in data.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    stored = [onnx.numpy_helper.from_array(value, f"x{place}") for place, value in case.known.items()]
    graph = helper.make_graph([node], "case", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_node_computes_what_onnx_says(case: Case) -> None:
    random = np.random.default_rng(7)
    data = {f"x{place}": _value(given, random, case.positive) for place, given in enumerate(case.inputs)}
    model = model_of(case, data)
    wanted = reference.ReferenceEvaluator(model).run(None, dict(data))

    graph = read(model.SerializeToString())
    check(graph)
    assert all(node.op != "opaque" for node in graph.nodes)
    got = evaluate(graph, {name: np.asarray(value) for name, value in data.items()})

    for place, value in enumerate(wanted):
        ours = np.asarray(got[f"y{place}"][0])
        assert ours.shape == value.shape
        assert ours.astype(np.float64) == pytest.approx(value.astype(np.float64), abs=2e-5, rel=2e-5)
