"""What single opcodes mean: a small module's graph, run in NumPy, against the meaning written by hand."""

from typing import Any

import numpy as np
import pytest
from hlo_texts import array, combiner, loaded, module, run
from numpy.typing import NDArray

from scalify.errors import InvalidGraph

X, Y = array(3, 4), array(3, 4, seed=1)
P3X4 = "%x = f32[3,4]{1,0} parameter(0)"


def check_one(instruction: str, expected: NDArray[Any], x: NDArray[Any] = X, *, before: str = "") -> None:
    shape = f"f32[{','.join(map(str, x.shape))}]"
    found = run(module(f"%x = {shape} parameter(0)", instruction, before=before), {"x": x})
    np.testing.assert_allclose(found[0], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("negate", -X),
        ("exponential", np.exp(X)),
        ("exponential-minus-one", np.expm1(X)),
        ("logistic", 1 / (1 + np.exp(-X))),
        ("tanh", np.tanh(X)),
        ("cosine", np.cos(X)),
        ("round-nearest-even", np.round(X)),
        ("sign", np.sign(X)),
        ("abs", np.abs(X)),
    ],
)
def test_one_operand(opcode: str, expected: NDArray[Any]):
    check_one(f"%r = f32[3,4] {opcode}(%x)", expected)


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("add", X + Y),
        ("subtract", X - Y),
        ("multiply", X * Y),
        ("divide", X / Y),
        ("maximum", np.maximum(X, Y)),
        ("remainder", np.fmod(X, Y)),
        ("atan2", np.arctan2(X, Y)),
    ],
)
def test_two_operands(opcode: str, expected: NDArray[Any]):
    text = module(P3X4, "%y = f32[3,4] parameter(1)", f"%r = f32[3,4] {opcode}(%x, %y)")
    np.testing.assert_allclose(run(text, {"x": X, "y": Y})[0], expected, atol=1e-12)


@pytest.mark.parametrize(("dtype", "numerators"), [("s32", [7, -7, 7, -7]), ("u32", [7, 9, 0, 1])])
def test_integers_are_divided_towards_zero(dtype: str, numerators: list[int]):
    divisors = [2, 2, -2, -2] if dtype == "s32" else [2, 4, 3, 5]
    text = module(
        f"%x = {dtype}[4] parameter(0)", f"%y = {dtype}[4] parameter(1)", f"%r = {dtype}[4] divide(%x, %y)"
    )
    found = run(text, {"x": np.array(numerators), "y": np.array(divisors)})[0]
    assert found.tolist() == [int(a / b) for a, b in zip(numerators, divisors, strict=True)]


def test_arithmetic_of_bools_is_logic():
    text = module("%x = pred[4] parameter(0)", "%y = pred[4] parameter(1)", "%r = pred[4] add(%x, %y)")
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert run(text, {"x": x, "y": y})[0].tolist() == [True, True, True, False]


def test_comparison_select_and_clamp():
    text = module(
        P3X4,
        "%low = f32[] constant(-0.5)",
        "%high = f32[] constant(0.5)",
        "%c = f32[3,4] clamp(%low, %x, %high)",
        "%less = pred[3,4] compare(%c, %x), direction=LT, type=FLOAT",
        "%r = f32[3,4] select(%less, %c, %x)",
    )
    np.testing.assert_allclose(run(text, {"x": X})[0], np.minimum(np.clip(X, -0.5, 0.5), X))


def test_movement():
    check_one("%r = f32[4,3] transpose(%x), dimensions={1,0}", X.T)
    check_one("%r = f32[2,6] reshape(%x)", X.reshape(2, 6))
    check_one("%r = f32[2,2] slice(%x), slice={[0:3:2], [1:3]}", X[0:3:2, 1:3])
    check_one("%r = f32[3,8] concatenate(%x, %x), dimensions={1}", np.concatenate([X, X], 1))
    check_one("%r = f32[3,4] reverse(%x), dimensions={1}", X[:, ::-1])
    check_one("%r = f32[3,5,4] broadcast(%x), dimensions={0,2}", np.broadcast_to(X[:, None], (3, 5, 4)))
    check_one("%r = f32[4,5,3] broadcast(%x), dimensions={2,0}", np.broadcast_to(X.T[:, None], (4, 5, 3)))


def test_padding_crops_and_spreads():
    padded = np.full((5, 3), 2.0)
    padded[::2] = X[:, 1:]
    text = module(P3X4, "%v = f32[] constant(2)", "%r = f32[5,3] pad(%x, %v), padding=0_0_1x-1_0", header="")
    np.testing.assert_allclose(run(text, {"x": X})[0], padded)


def test_a_bitcast_follows_the_layouts():
    plain = module("%x = f32[3,4]{1,0} parameter(0)", "%r = f32[12]{0} bitcast(%x)")
    np.testing.assert_allclose(run(plain, {"x": X})[0], X.reshape(12))
    turned = module("%x = f32[3,4]{0,1} parameter(0)", "%r = f32[12]{0} bitcast(%x)")
    np.testing.assert_allclose(run(turned, {"x": X})[0], X.T.reshape(12))
    back = module("%x = f32[3,4]{0,1} parameter(0)", "%r = f32[4,3]{1,0} bitcast(%x)")
    np.testing.assert_allclose(run(back, {"x": X})[0], X.T)
    tiled = loaded(module("%x = f32[3,4]{1,0:T(8,128)} parameter(0)", "%r = f32[12]{0} bitcast(%x)"))
    assert [node.op for node in tiled.nodes] == ["input", "opaque"]


def test_identities_vanish():
    text = module(
        P3X4,
        "%a = f32[3,4] copy(%x)",
        "%b = f32[3,4] convert(%a)",
        "%c = f32[3,4]{1,0} reshape(%b)",
        "%d = f32[3,4] transpose(%c), dimensions={0,1}",
        "%e = f32[3,4] slice(%d), slice={[0:3], [0:4]}",
        '%f = f32[3,4] custom-call(%e), custom_call_target="AwsNeuronTransferWithStaticRing"',
        "%g = f32[3,4] optimization-barrier(%f)",
        "%t = (f32[3,4], f32[3,4]) tuple(%g, %a)",
        "%r = f32[3,4] get-tuple-element(%t), index=1",
    )
    assert [node.op for node in loaded(text).nodes] == ["input"]


def test_dots_of_any_dimensions():
    x, y = array(2, 3, 4, 5), array(5, 2, 6, 4, seed=1)
    text = module(
        "%x = f32[2,3,4,5] parameter(0)",
        "%y = f32[5,2,6,4] parameter(1)",
        "%r = f32[2,4,3,6] dot(%x, %y), lhs_batch_dims={0,2}, rhs_batch_dims={1,3}, "
        "lhs_contracting_dims={3}, rhs_contracting_dims={0}",
    )
    np.testing.assert_allclose(run(text, {"x": x, "y": y})[0], np.einsum("abcd,daec->acbe", x, y), atol=1e-12)


def test_a_convolution_in_another_order_of_dimensions():
    x, w = array(2, 5, 6, 3), array(3, 2, 3, 4, seed=1)
    text = module(
        "%x = f32[2,5,6,3] parameter(0)",
        "%w = f32[3,2,3,4] parameter(1)",
        "%r = f32[2,5,3,4] convolution(%x, %w), window={size=3x2 stride=1x2 pad=1_1x0_0}, "
        "dim_labels=b01f_01io->b01f",
    )
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    expected = np.zeros((2, 5, 3, 4))
    for row in range(5):
        for column in range(3):
            window = padded[:, row : row + 3, 2 * column : 2 * column + 2]
            expected[:, row, column] = np.einsum("bhwi,hwio->bo", window, w)
    np.testing.assert_allclose(run(text, {"x": x, "w": w})[0], expected, atol=1e-12)


def test_a_transposed_convolution_has_holes_in_its_input():
    x, w = array(1, 3, 1), array(2, 1, 1, seed=1)
    text = module(
        "%x = f32[1,3,1] parameter(0)",
        "%w = f32[2,1,1] parameter(1)",
        "%r = f32[1,4,1] convolution(%x, %w), window={size=2 lhs_dilate=2 rhs_reversal=1}, "
        "dim_labels=b0f_0io->b0f",
    )
    spread = np.zeros(5)
    spread[::2] = x[0, :, 0]
    expected = np.convolve(spread, w[:, 0, 0], mode="valid")
    np.testing.assert_allclose(run(text, {"x": x, "w": w})[0][0, :, 0], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("opcode", "init", "expected"),
    [
        ("add", "0", X.sum(1)),
        ("multiply", "1", X.prod(1)),
        ("maximum", "-inf", X.max(1)),
        ("minimum", "inf", X.min(1)),
        ("maximum", "0.25", np.maximum(X.max(1), 0.25)),
    ],
)
def test_reductions_by_their_computation(opcode: str, init: str, expected: NDArray[Any]):
    text = module(
        P3X4,
        f"%i = f32[] constant({init})",
        "%r = f32[3] reduce(%x, %i), dimensions={1}, to_apply=%combine",
        before=combiner(opcode),
    )
    np.testing.assert_allclose(run(text, {"x": X})[0], expected, atol=1e-12)


@pytest.mark.parametrize(("opcode", "init"), [("subtract", "0"), ("add", "1"), ("multiply", "0")])
def test_other_reductions_are_opaque(opcode: str, init: str):
    text = module(
        P3X4,
        f"%i = f32[] constant({init})",
        "%r = f32[3] reduce(%x, %i), dimensions={1}, to_apply=%combine",
        before=combiner(opcode),
    )
    assert loaded(text).nodes[-1].op == "opaque"


def test_a_reduction_that_reads_one_operand_twice_is_opaque():
    before = combiner("add").replace("add(%combine.a, %combine.b)", "add(%combine.a, %combine.a)")
    text = module(
        P3X4,
        "%i = f32[] constant(0)",
        "%r = f32[3] reduce(%x, %i), dimensions={1}, to_apply=%combine",
        before=before,
    )
    assert loaded(text).nodes[-1].op == "opaque"


def test_reductions_of_bools():
    text = module(
        "%x = pred[3,2] parameter(0)",
        "%i = pred[] constant(true)",
        "%r = pred[3] reduce(%x, %i), dimensions={1}, to_apply=%combine",
        before=combiner("and", "pred"),
    )
    x = np.array([[True, True], [True, False], [False, False]])
    assert run(text, {"x": x})[0].tolist() == [True, False, False]


def test_a_reduction_of_nothing_is_its_start():
    text = module(
        "%x = f32[3,0] parameter(0)",
        "%i = f32[] constant(-inf)",
        "%r = f32[3] reduce(%x, %i), dimensions={1}, to_apply=%combine",
        before=combiner("maximum"),
    )
    assert run(text, {"x": np.zeros((3, 0))})[0].tolist() == [-np.inf] * 3


ROWS = np.array([[2, 0], [1, 1]])


@pytest.mark.parametrize(
    ("shape", "attributes", "expected"),
    [
        # Rows, with the window dimension last, first, and in the middle.
        ("2,2,4", "offset_dims={2}, collapsed_slice_dims={0}, slice_sizes={1,4}", X[ROWS]),
        ("4,2,2", "offset_dims={0}, collapsed_slice_dims={0}, slice_sizes={1,4}", X[ROWS].transpose(2, 0, 1)),
        ("2,4,2", "offset_dims={1}, collapsed_slice_dims={0}, slice_sizes={1,4}", X[ROWS].transpose(0, 2, 1)),
        # The indexed dimension kept with size one, and rows cut short.
        ("2,2,1,4", "offset_dims={2,3}, collapsed_slice_dims={}, slice_sizes={1,4}", X[ROWS][:, :, None]),
        ("2,2,3", "offset_dims={2}, collapsed_slice_dims={0}, slice_sizes={1,3}", X[ROWS][..., :3]),
    ],
)
def test_gathers_of_rows(shape: str, attributes: str, expected: NDArray[Any]):
    text = module(
        P3X4,
        "%i = s32[2,2] parameter(1)",
        f"%r = f32[{shape}] gather(%x, %i), {attributes}, start_index_map={{0}}, index_vector_dim=2",
    )
    np.testing.assert_allclose(run(text, {"x": X, "i": ROWS})[0], expected)


def test_a_gather_along_the_second_dimension():
    text = module(
        P3X4,
        "%i = s32[2,1] parameter(1)",
        "%r = f32[2,3] gather(%x, %i), offset_dims={1}, collapsed_slice_dims={1}, slice_sizes={3,1}, "
        "start_index_map={1}, index_vector_dim=1",
    )
    np.testing.assert_allclose(run(text, {"x": X, "i": np.array([[3], [0]])})[0], X[:, [3, 0]].T)


def test_a_gather_by_several_coordinates_is_opaque():
    text = module(
        P3X4,
        "%i = s32[5,2] parameter(1)",
        "%r = f32[5] gather(%x, %i), offset_dims={}, collapsed_slice_dims={0,1}, slice_sizes={1,1}, "
        "start_index_map={0,1}, index_vector_dim=1",
    )
    assert loaded(text).nodes[-1].op == "opaque"


def test_dynamic_slices_clamp_their_starts():
    text = module(
        P3X4,
        "%i = s32[] parameter(1)",
        "%z = s32[] constant(0)",
        "%r = f32[2,4] dynamic-slice(%x, %i, %z), dynamic_slice_sizes={2,4}",
    )
    np.testing.assert_allclose(run(text, {"x": X, "i": np.array(5)})[0], X[1:])


def test_a_constant_dynamic_slice_is_a_slice():
    text = module(
        P3X4,
        "%i = s32[] constant(9)",
        "%z = s32[] constant(1)",
        "%u = f32[1,2] dynamic-slice(%x, %i, %z), dynamic_slice_sizes={1,2}",
        "%r = f32[3,4] dynamic-update-slice(%x, %u, %z, %z)",
    )
    expected = X.copy()
    expected[1:2, 1:3] = X[2:3, 1:3]
    np.testing.assert_allclose(run(text, {"x": X})[0], expected)
    assert not [node for node in loaded(text).nodes if node.op.startswith("dynamic")]


def test_sorts_by_plain_comparison():
    before = (
        combiner("compare", "f32").replace("f32[] compare", "pred[] compare").replace("-> f32[]", "-> pred[]")
    )
    for direction, expected in (("LT", np.sort(X, 1)), ("GT", -np.sort(-X, 1))):
        compare = before.replace("%combine.b)", f"%combine.b), direction={direction}")
        text = module(P3X4, "%r = f32[3,4] sort(%x), dimensions={1}, to_apply=%combine", before=compare)
        np.testing.assert_allclose(run(text, {"x": X})[0], expected)


def test_topk_gives_values_and_places():
    text = module(
        P3X4,
        "%t = (f32[3,2], s32[3,2]) topk(%x), k=2, largest=true",
        "%r = s32[3,2] get-tuple-element(%t), index=1",
    )
    np.testing.assert_array_equal(run(text, {"x": X})[0], np.argsort(-X, 1)[:, :2])


def test_batch_norm_finds_its_features():
    x, parts = array(2, 5, 3), [array(3, seed=seed) for seed in range(1, 5)]
    parts[3] = np.abs(parts[3])
    names = "abcd"
    text = module(
        "%x = f32[2,5,3] parameter(0)",
        *(f"%{name} = f32[3] parameter({index})" for index, name in enumerate(names, start=1)),
        "%r = f32[2,5,3] batch-norm-inference(%x, %a, %b, %c, %d), epsilon=0.1, feature_index=2",
    )
    scale, offset, mean, variance = parts
    expected = (x - mean) / np.sqrt(variance + 0.1) * scale + offset
    found = run(text, {"x": x, **dict(zip(names, parts, strict=True))})[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)


LOOP = """%body (b: (s32[], f32[4])) -> (s32[], f32[4]) {
  %b = (s32[], f32[4]) parameter(0)
  %b.i = s32[] get-tuple-element(%b), index=0
  %b.x = f32[4] get-tuple-element(%b), index=1
  %b.y = f32[4] OPCODE(%b.x)
  ROOT %b.r = (s32[], f32[4]) tuple(%b.i, %b.y)
}

%until (c: (s32[], f32[4])) -> pred[] {
  %c = (s32[], f32[4]) parameter(0)
  %c.i = s32[] get-tuple-element(%c), index=0
  %c.n = s32[] constant(5)
  ROOT %c.r = pred[] compare(%c.i, %c.n), direction=LT
}
"""


def loop(opcode: str) -> str:
    return module(
        "%i = s32[] parameter(0)",
        "%x = f32[4] parameter(1)",
        "%t = (s32[], f32[4]) tuple(%i, %x)",
        "%r = (s32[], f32[4]) while(%t), condition=%until, body=%body",
        before=LOOP.replace("OPCODE", opcode),
    )


def test_loops_are_opaque_and_told_apart_by_their_bodies():
    graph = loaded(loop("negate"))
    first, second = (node for node in graph.nodes if node.op == "opaque")
    assert first.attrs["target"] == second.attrs["target"] == "hlo.while"
    assert first.attrs["config"] != second.attrs["config"]
    configs = {opcode: str(loaded(loop(opcode)).nodes[-1].attrs["config"]) for opcode in ("negate", "tanh")}
    assert configs["negate"] != configs["tanh"]
    renamed = loaded(loop("negate").replace("%b.y", "%other"))
    assert renamed.nodes[-1].attrs == graph.nodes[-1].attrs


def test_a_loop_that_reads_the_rank_says_so():
    before = LOOP.replace("OPCODE", "negate").replace("  %b.y", "  %b.p = u32[] partition-id()\n  %b.y")
    config = (
        loaded(loop("negate").replace(LOOP.replace("OPCODE", "negate"), before)).nodes[-1].attrs["config"]
    )
    assert str(config).startswith("rank-dependent")


def test_effects_are_results_in_order():
    text = module(
        P3X4,
        '%a = () custom-call(%x), custom_call_target="print", custom_call_has_side_effect=true',
        '%b = () custom-call(%x), custom_call_target="print", custom_call_has_side_effect=true',
        "%r = f32[3,4] negate(%x)",
    )
    graph = loaded(text)
    assert [output.name for output in graph.outputs] == ["output.0", "effect.0", "effect.1"]
    by_id = graph.by_id()
    configs = {by_id[output.value].attrs["config"] for output in graph.outputs[1:]}
    assert len(configs) == 2


def test_draws_are_their_own():
    text = module(
        "%a = f32[] constant(0)",
        "%b = f32[] constant(2)",
        "%r = f32[4] rng(%a, %b), distribution=rng_uniform",
    )
    assert [node.op for node in loaded(text).nodes[2:]] == ["random", "sub", "mul", "add"]


def test_a_chain_of_doubling_calls_is_refused():
    """A few lines that would inline to more nodes than fit in memory."""
    first = "%f0 {\n  %p0 = f32[] parameter(0)\n  ROOT %r0 = f32[] negate(%p0)\n}\n"
    calls = [
        f"%f{depth} {{\n  %p{depth} = f32[] parameter(0)\n"
        f"  %a{depth} = f32[] call(%p{depth}), to_apply=%f{depth - 1}\n"
        f"  ROOT %r{depth} = f32[] call(%a{depth}), to_apply=%f{depth - 1}\n}}\n"
        for depth in range(1, 60)
    ]
    text = module(
        "%x = f32[] parameter(0)", "%y = f32[] call(%x), to_apply=%f59", before=first + "".join(calls)
    )
    with pytest.raises(InvalidGraph, match="once its calls are inlined"):
        loaded(text)
