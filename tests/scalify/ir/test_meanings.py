"""Every op's NumPy meaning against PyTorch's own kernel, in float64."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeVarTuple, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from scalify_graphs import run_op

from scalify.ir.build import GraphBuilder
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Attr, DType
from scalify.ir.ops import OPS

torch.manual_seed(0)


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


X, Y, POSITIVE = _normal(2, 3, 4), _normal(2, 3, 4), _normal(2, 3, 4).abs() + 0.1
IMAGE, WEIGHT, BIAS = _normal(2, 4, 7, 6), _normal(4), _normal(4)
INTS, COUNTS = torch.randint(-50, 50, (3, 4)), torch.randint(1, 9, (3, 4))
TRUE = torch.randint(0, 2, (2, 3, 4)) > 0
Q, K, V = _normal(2, 4, 5, 8), _normal(2, 2, 7, 8), _normal(2, 2, 7, 3)
MASK, BOOL_MASK = _normal(5, 7), torch.ones(5, 7).tril() > 0
LOGITS, TARGET = _normal(5, 6), torch.tensor([0, 5, -100, 2, 3])
TABLE, INDEX = _normal(9, 4), torch.randint(0, 9, (2, 3))
TIES = torch.tensor([[3.0, 1.0, 3.0, 2.0, 1.0]], dtype=torch.float64)

NONE: Mapping[str, Attr] = MappingProxyType({})


T = torch.Tensor
Operands = TypeVarTuple("Operands")


class Case(NamedTuple):
    """An op, its operands, and what PyTorch says."""

    op: str
    operands: tuple[T, ...]
    reference: Callable[..., T]
    attrs: Mapping[str, Attr] = NONE
    shape: tuple[int, ...] | None = None
    dtype: DType | None = None


def _case(
    op: str,
    operands: tuple[*Operands],
    reference: Callable[[*Operands], T],
    attrs: Mapping[str, Attr] = NONE,
    shape: tuple[int, ...] | None = None,
    dtype: DType | None = None,
) -> Case:
    """A case whose reference takes as many tensors as there are operands."""
    return Case(op, cast("tuple[T, ...]", operands), reference, attrs, shape, dtype)


def _attention(**more: bool) -> Callable[..., T]:
    def reference(q: T, k: T, v: T, mask: T | None = None) -> T:
        return F.scaled_dot_product_attention(q, k, v, mask, scale=0.5, enable_gqa=True, **more)

    return reference


def _unary(op: str, reference: Callable[..., T], x: T = X) -> Case:
    return _case(op, (x,), reference)


def _binary(op: str, reference: Callable[..., T], x: T = X, y: T = Y) -> Case:
    return _case(op, (x, y), reference)


_WINDOW: Mapping[str, Attr] = {"kernel": (3, 2), "strides": (2, 1), "padding": ((1, 1), (1, 1))}

CASES = (
    _unary("neg", torch.neg),
    _unary("abs", torch.abs),
    _unary("exp", torch.exp),
    _unary("exp2", torch.exp2),
    _unary("expm1", torch.expm1),
    _unary("log", torch.log, POSITIVE),
    _unary("log2", torch.log2, POSITIVE),
    _unary("log1p", torch.log1p, POSITIVE),
    _unary("sqrt", torch.sqrt, POSITIVE),
    _unary("rsqrt", torch.rsqrt, POSITIVE),
    _unary("reciprocal", torch.reciprocal),
    _unary("sin", torch.sin),
    _unary("cos", torch.cos),
    _unary("tan", torch.tan),
    _unary("tanh", torch.tanh),
    _unary("atan", torch.atan),
    _unary("sigmoid", torch.sigmoid),
    _unary("relu", F.relu),
    _unary("silu", F.silu),
    _unary("erf", torch.erf),
    _unary("floor", torch.floor),
    _unary("ceil", torch.ceil),
    _unary("round", torch.round, torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.4])),
    _unary("trunc", torch.trunc),
    _unary("sign", torch.sign),
    _unary("not", torch.logical_not, TRUE),
    _unary("not", torch.bitwise_not, INTS),
    _unary("square", torch.square),
    _unary("softplus", F.softplus, 3 * X),
    _unary("is_finite", torch.isfinite, torch.tensor([1, torch.inf, torch.nan])),
    _unary("is_nan", torch.isnan, torch.tensor([1, torch.inf, torch.nan])),
    _unary("gelu", F.gelu),
    _case("gelu", (X,), lambda x: F.gelu(x, approximate="tanh"), {"approximate": "tanh"}),
    _case("leaky_relu", (X,), lambda x: F.leaky_relu(x, 0.2), {"slope": 0.2}),
    _case("cast", (9 * X,), lambda x: x.to(torch.int64), dtype="i64"),
    _case("cast", (9 * INTS,), lambda x: x.to(torch.int8), dtype="i8"),
    _case("cast", (INTS,), lambda x: x.to(torch.bool), dtype="bool"),
    _case("cast", (TRUE,), lambda x: x.to(torch.float32), dtype="f32"),
    _binary("add", torch.add),
    _binary("add", torch.add, TRUE, TRUE.flip(0)),
    _binary("sub", torch.sub, X, Y[:, :1]),
    _binary("mul", torch.mul, X, Y[0, 0]),
    _binary("div", torch.div),
    _binary("div", torch.div, INTS, COUNTS),
    _binary("floordiv", torch.floor_divide, INTS, COUNTS),
    _binary("floordiv", torch.floor_divide),
    _binary("mod", torch.remainder, INTS, -COUNTS),
    _binary("mod", torch.remainder),
    _binary("rem", torch.fmod, INTS, -COUNTS),
    _binary("rem", torch.fmod),
    _binary("pow", torch.pow, POSITIVE, Y),
    _binary("pow", torch.pow, INTS, COUNTS),
    _binary("max", torch.maximum),
    _binary("min", torch.minimum),
    _binary("eq", torch.eq, INTS, INTS.flip(0)),
    _binary("ne", torch.ne, INTS, INTS.flip(0)),
    _binary("lt", torch.lt),
    _binary("le", torch.le, INTS, INTS.flip(0)),
    _binary("gt", torch.gt),
    _binary("ge", torch.ge, INTS, INTS.flip(0)),
    _binary("and", torch.logical_and, TRUE, TRUE.flip(0)),
    _binary("and", torch.bitwise_and, INTS, COUNTS),
    _binary("or", torch.bitwise_or, INTS, COUNTS),
    _binary("xor", torch.bitwise_xor, INTS, COUNTS),
    _binary("atan2", torch.atan2),
    _binary("shift_left", torch.bitwise_left_shift, INTS, COUNTS),
    _binary("shift_right", torch.bitwise_right_shift, INTS, COUNTS),
    _case("where", (TRUE, X, Y[:1]), torch.where),
    _case(
        "clamp", (torch.tensor(-0.5), X, torch.tensor(0.25)), lambda low, x, high: torch.clamp(x, low, high)
    ),
    _case("reshape", (X,), lambda x: x.reshape(4, 6), shape=(4, 6)),
    _case("transpose", (X,), lambda x: x.permute(2, 0, 1), {"perm": (2, 0, 1)}),
    _case("broadcast", (X[0, :, :1],), lambda x: x[None].expand(2, 3, 4), {"dims": (1, 2)}, shape=(2, 3, 4)),
    _case(
        "slice",
        (X,),
        lambda x: x[1:2, 0:3:2, 1:4],
        {"starts": (1, 0, 1), "limits": (2, 3, 4), "steps": (1, 2, 1)},
    ),
    _case("concat", (X, Y, X), lambda x, y, z: torch.cat((x, y, z), 1), {"axis": 1}),
    _case(
        "pad",
        (X, torch.tensor(7.0)),
        lambda x, fill: F.pad(x, (2, 0, -1, 1), value=float(fill)),
        {"low": (0, -1, 2), "high": (0, 1, 0), "interior": (0, 0, 0)},
    ),
    _case("reverse", (X,), lambda x: x.flip(0, 2), {"axes": (0, 2)}),
    _case(
        "update_slice",
        (X, Y[:1, :2]),
        lambda x, y: x.slice_scatter(x[1:].slice_scatter(y, 1, 1, 3), 0, 1, 2),
        {"starts": (1, 1, 0)},
    ),
    _case("tril", (X,), lambda x: x.tril(1), {"k": 1}),
    _case("triu", (X,), lambda x: x.triu(-1), {"k": -1}),
    _case("einsum", (X, Y), lambda x, y: torch.einsum("bij,bkj->ikb", x, y), {"spec": "bij,bkj->ikb"}),
    _case("einsum", (X,), lambda x: x.sum((0, 2)), {"spec": "abc->b"}),
    _case(
        "einsum",
        (X, Y, X),
        lambda x, y, z: torch.einsum("abc,abd,aec->de", x, y, z),
        {"spec": "abc,abd,aec->de"},
    ),
    _case(
        "conv",
        (IMAGE, _normal(6, 2, 3, 2)),
        lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
        {"strides": (2, 1), "padding": ((1, 1), (2, 2)), "dilation": (1, 2), "groups": 2},
    ),
    _case(
        "conv",
        (_normal(2, 3, 9), _normal(5, 3, 4)),
        lambda x, w: F.conv1d(F.pad(x, (3, 0)), w),
        {"strides": (1,), "padding": ((3, 0),), "dilation": (1,)},
    ),
    _case("reduce", (X,), lambda x: x.sum((0, 2)), {"kind": "sum", "axes": (2, 0)}),
    _case("reduce", (TRUE,), lambda x: x.sum((1,)), {"kind": "sum", "axes": (1,)}),
    _case("reduce", (X,), lambda x: x.mean(1, True), {"kind": "mean", "axes": (1,), "keepdims": True}),
    _case("reduce", (X,), lambda x: x.amax((0, 1)), {"kind": "max", "axes": (0, 1)}),
    _case("reduce", (X,), lambda x: x.amin((0, 1)), {"kind": "min", "axes": (0, 1)}),
    _case("reduce", (X,), lambda x: x.prod(1), {"kind": "prod", "axes": (1,)}),
    _case("reduce", (TRUE,), lambda x: x.any(1), {"kind": "any", "axes": (1,)}),
    _case("reduce", (TRUE,), lambda x: x.all(1), {"kind": "all", "axes": (1,)}),
    _case("argmax", (X,), lambda x: x.argmax(1), {"axis": 1}),
    _case("argmin", (X,), lambda x: x.argmin(2, keepdim=True), {"axis": 2, "keepdims": True}),
    _case("cumsum", (X,), lambda x: x.cumsum(1), {"axis": 1}),
    _case("cumprod", (X,), lambda x: x.cumprod(2), {"axis": 2}),
    _case("sort", (X,), lambda x: x.sort(1, descending=True)[0], {"axis": 1, "descending": True}),
    _case("argsort", (TIES,), lambda x: x.argsort(dim=1, stable=True), {"axis": 1}),
    _case(
        "argsort",
        (TIES,),
        lambda x: x.argsort(dim=1, descending=True, stable=True),
        {"axis": 1, "descending": True},
    ),
    _case("topk_values", (X,), lambda x: x.topk(2, 1)[0], {"k": 2, "axis": 1}),
    _case(
        "topk_indices", (X,), lambda x: x.topk(3, 2, largest=False)[1], {"k": 3, "axis": 2, "largest": False}
    ),
    _case("softmax", (9 * X,), lambda x: x.softmax(1), {"axis": 1}),
    _case("log_softmax", (9 * X,), lambda x: x.log_softmax(2), {"axis": 2}),
    _case("logsumexp", (9 * X,), lambda x: x.logsumexp((0, 2)), {"axes": (0, 2)}),
    _case("logsumexp", (torch.full((2, 2), -torch.inf),), lambda x: x.logsumexp(1), {"axes": (1,)}),
    _case(
        "layer_norm",
        (X, _normal(3, 4), _normal(3, 4)),
        lambda x, w, b: F.layer_norm(x, (3, 4), w, b, 1e-3),
        {"axes": (1, 2), "eps": 1e-3},
    ),
    _case("layer_norm", (X,), lambda x: F.layer_norm(x, (4,), eps=1e-3), {"axes": (2,), "eps": 1e-3}),
    _case(
        "layer_norm",
        (X, _normal(3), _normal(3)),
        lambda x, w, b: F.layer_norm(x.mT, (3,), w, b, 1e-3).mT,
        {"axes": (1,), "eps": 1e-3},
    ),
    _case("rms_norm", (X, WEIGHT), lambda x, w: F.rms_norm(x, (4,), w, 1e-3), {"axes": (2,), "eps": 1e-3}),
    _case("rms_norm", (X,), lambda x: F.rms_norm(x, (3, 4), eps=1e-3), {"axes": (1, 2), "eps": 1e-3}),
    _case(
        "group_norm",
        (IMAGE, WEIGHT, BIAS),
        lambda x, w, b: F.group_norm(x, 2, w, b, 1e-3),
        {"groups": 2, "eps": 1e-3},
    ),
    _case(
        "batch_norm",
        (IMAGE, WEIGHT, BIAS.abs(), BIAS, WEIGHT),
        lambda x, mean, var, w, b: F.batch_norm(x, mean, var, w, b, eps=1e-3),
        {"eps": 1e-3},
    ),
    _case("attention", (Q, K, V), _attention(), {"scale": 0.5}),
    _case("attention", (Q, K, V), _attention(is_causal=True), {"scale": 0.5, "causal": True}),
    _case("attention", (Q, K, V, MASK), _attention(), {"scale": 0.5}),
    _case("attention", (Q, K, V, BOOL_MASK), _attention(), {"scale": 0.5}),
    *(
        _case(
            "cross_entropy",
            (LOGITS, TARGET),
            partial(F.cross_entropy, reduction=reduction),
            {"reduction": reduction},
        )
        for reduction in ("none", "mean", "sum")
    ),
    _case(
        "interpolate",
        (IMAGE,),
        lambda x: F.interpolate(x, (14, 9)),
        {"scales": (7 / 14, 6 / 9)},
        shape=(2, 4, 14, 9),
    ),
    _case(
        "interpolate",
        (IMAGE,),
        lambda x: F.interpolate(x, (14, 9), mode="bilinear"),
        {"mode": "linear", "scales": (7 / 14, 6 / 9)},
        shape=(2, 4, 14, 9),
    ),
    _case(
        "interpolate",
        (IMAGE,),
        lambda x: F.interpolate(x, (5, 9), mode="bilinear", align_corners=True),
        {"mode": "linear", "align_corners": True, "scales": (6 / 4, 5 / 8)},
        shape=(2, 4, 5, 9),
    ),
    _case(
        "max_pool",
        (IMAGE,),
        lambda x: F.max_pool2d(x, (3, 2), (2, 1), 1, (1, 2)),
        {**_WINDOW, "dilation": (1, 2)},
    ),
    _case("avg_pool", (IMAGE,), lambda x: F.avg_pool2d(x, (3, 2), (2, 1), 1), _WINDOW),
    _case(
        "avg_pool",
        (IMAGE,),
        lambda x: F.avg_pool2d(x, (3, 2), (2, 1), 1, count_include_pad=False),
        {**_WINDOW, "count_padding": False},
    ),
    _case("take", (TABLE, INDEX), lambda x, i: F.embedding(i, x), {"axis": 0}),
    _case("take", (X, INDEX % 3), lambda x, i: x[:, i], {"axis": 1}),
    _case("take_along", (TABLE[:3], COUNTS % 4), lambda x, i: x.gather(1, i), {"axis": 1}),
    _case("scatter", (TABLE, COUNTS[:2], _normal(3, 4)), lambda x, i, s: x.scatter(0, i, s), {"axis": 0}),
    _case(
        "scatter",
        (TABLE, COUNTS, _normal(3, 4)),
        lambda x, i, s: x.scatter_add(0, i, s),
        {"axis": 0, "mode": "add"},
    ),
    _case("index_put", (TABLE, _normal(2, 4), INDEX[0, :2]), lambda x, s, i: x.index_put((i,), s)),
    _case(
        "index_put",
        (TABLE, _normal(1), INDEX, INDEX[0] % 4),
        lambda x, s, i, j: x.index_put((i, j), s, accumulate=True),
        {"mode": "add"},
    ),
    _case("one_hot", (INDEX,), lambda i: F.one_hot(i, 9), {"classes": 9}),
)


@pytest.mark.parametrize("case", CASES, ids=[case.op for case in CASES])
def test_an_op_means_what_it_means_in_torch(case: Case) -> None:
    operands = (operand.numpy() for operand in case.operands)
    ours = run_op(case.op, *operands, attrs=case.attrs, shape=case.shape, dtype=case.dtype)
    theirs = case.reference(*case.operands)
    assert ours.shape == theirs.shape
    tolerance = 1e-6 if theirs.dtype == torch.float32 else 1e-9
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=tolerance, atol=1e-12)


# Compared with hand-written NumPy: here, or in test_evaluate.py.
ELSEWHERE = {
    *("iota", "constant", "rank", "dynamic_slice", "dynamic_update_slice"),
    *("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "broadcast_from"),
}
WITHOUT_MEANING = {"input", "random", "opaque"}


def test_every_op_has_a_meaning_that_is_compared_with_something() -> None:
    assert {case.op for case in CASES} | ELSEWHERE | WITHOUT_MEANING == set(OPS)
    meaningless = {name for name, spec in OPS.items() if spec.meaning is None and spec.across is None}
    assert meaningless == WITHOUT_MEANING


def test_iota_counts_along_its_axis() -> None:
    ours = run_op("iota", attrs={"axis": 1}, shape=(2, 3), dtype="f32")
    np.testing.assert_array_equal(ours, [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])


def test_constants_hold_all_their_elements_or_one() -> None:
    np.testing.assert_array_equal(run_op("constant", attrs={"data": (3,)}, shape=(2,), dtype="f32"), [3, 3])
    np.testing.assert_array_equal(run_op("constant", attrs={"data": (3, 4)}, shape=(2,), dtype="i8"), [3, 4])
    np.testing.assert_array_equal(
        run_op("constant", attrs={"data": (1, 2, 3, 4)}, shape=(2,), dtype="c64"), [1 + 2j, 3 + 4j]
    )
    assert run_op("constant", attrs={"data": (2**64 - 1,)}, shape=(), dtype="u64") == -1


@given(st.integers(-9, 9), st.integers(-9, 9))
def test_dynamic_slices_are_moved_inwards(row: int, column: int) -> None:
    x, update = np.arange(30).reshape(5, 6), np.full((2, 3), -1)
    starts = (np.asarray(row), np.asarray(column))
    r, c = min(max(row, 0), 3), min(max(column, 0), 3)
    cut = run_op("dynamic_slice", x, *starts, attrs={"sizes": (2, 3)})
    np.testing.assert_array_equal(cut, x[r : r + 2, c : c + 3])
    wanted = x.copy()
    wanted[r : r + 2, c : c + 3] = -1
    np.testing.assert_array_equal(run_op("dynamic_update_slice", x, update, *starts), wanted)


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@given(sizes, st.data())
def test_padding_between_elements_is_undone_by_steps(shape: list[int], data: st.DataObject) -> None:
    x = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    counts = st.tuples(*(st.integers(0, 3) for _ in shape))
    low, high, interior = data.draw(counts), data.draw(counts), data.draw(counts)
    padded = run_op("pad", x, np.asarray(0), attrs={"low": low, "high": high, "interior": interior})
    assert padded.sum() == x.sum()
    limits = tuple(size - after for size, after in zip(padded.shape, high, strict=True))
    steps = tuple(gap + 1 for gap in interior)
    back = run_op("slice", padded, attrs={"starts": low, "limits": limits, "steps": steps})
    np.testing.assert_array_equal(back, x)


def test_indices_outside_the_classes_give_zeros() -> None:
    ours = run_op("one_hot", np.array([-1, 1, 2]), attrs={"classes": 2}, dtype="f32")
    np.testing.assert_array_equal(ours, [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])


def test_complex_numbers_are_held_as_such() -> None:
    z = np.array([3 + 4j])
    np.testing.assert_allclose(run_op("abs", z), [5])
    np.testing.assert_allclose(run_op("mul", z, z), [-7 + 24j])
    np.testing.assert_allclose(run_op("cast", z, dtype="f32"), [3])


def test_a_query_that_may_see_no_key_has_no_value() -> None:
    ours = run_op("attention", Q.numpy(), K.numpy(), V.numpy(), np.zeros((5, 7)) > 0, attrs={"scale": 1.0})
    assert np.isnan(ours).all()


@pytest.mark.parametrize(("dtype", "wanted"), [("u8", (254, 0, 0)), ("i8", (-2, 0, 0))])
def test_bits_beyond_the_width_are_lost(dtype: DType, wanted: tuple[int, ...]) -> None:
    build = GraphBuilder("g")
    x, count = build.constant((127, 64, 1), dtype, (3,)), build.constant((1, 2, 8), dtype, (3,))
    build.output("y", build.add("shift_left", x, count))
    np.testing.assert_array_equal(evaluate(build.graph(), {})["y"][0], wanted)
