"""Type rules: what each op accepts, what it gives, and what it says of the rest."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalify.errors import InvalidGraph
from scalify.ir.graph import Attr, DType, TensorType
from scalify.ir.ops import OPS, type_of
from scalify.ir.ops.dtypes import DTYPES, KIND_OF, promote, widest_kind

VOCABULARY = """
input constant iota rank random opaque
neg abs exp exp2 expm1 log log2 log1p sqrt rsqrt reciprocal sin cos tan tanh atan sigmoid relu silu erf floor
ceil round trunc sign not square softplus is_finite is_nan gelu leaky_relu cast
add sub mul div floordiv mod rem pow max min eq ne lt le gt ge and or xor atan2 shift_left shift_right
where clamp
reshape transpose broadcast slice concat pad reverse update_slice dynamic_slice dynamic_update_slice tril triu
einsum conv reduce argmax argmin cumsum cumprod sort argsort topk_values topk_indices
softmax log_softmax logsumexp layer_norm rms_norm group_norm batch_norm attention cross_entropy interpolate
max_pool avg_pool take take_along scatter index_put one_hot
all_reduce all_gather reduce_scatter all_to_all permute broadcast_from
"""


def test_the_table_is_the_vocabulary() -> None:
    assert sorted(OPS) == sorted(VOCABULARY.split())
    assert all(name == spec.name for name, spec in OPS.items())


def f32(*shape: int) -> TensorType:
    return TensorType("f32", shape)


def i64(*shape: int) -> TensorType:
    return TensorType("i64", shape)


BOOL = TensorType("bool", (4,))
C64 = TensorType("c64", (4,))
WINDOW: dict[str, Attr] = {"kernel": (3,), "strides": (1,), "padding": ((0, 0),)}
MAX_POOL: dict[str, Attr] = {**WINDOW, "dilation": (1,)}
ATTENTION: dict[str, Attr] = {"scale": 1.0, "causal": False}
CONV: dict[str, Attr] = {"strides": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": 1}


def _wrong(message: str, op: str, *operands: TensorType, **attrs: Attr) -> object:
    return pytest.param(op, operands, attrs, None, message, id=f"{op}: {message[:40]}")


def _stated(message: str, declared: TensorType, op: str, *operands: TensorType, **attrs: Attr) -> object:
    return pytest.param(op, operands, attrs, declared, message, id=f"{op}: {message[:40]}")


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "declared", "message"),
    [
        _wrong("do not broadcast", "add", f32(4), f32(3)),
        _wrong("no meaning for bool", "sub", BOOL, BOOL),
        _wrong("no meaning for c64", "lt", C64, C64),
        _wrong("no meaning for f32", "and", f32(4), f32(4)),
        _wrong("no meaning for f32", "shift_left", i64(4), f32(4)),
        _wrong("is bool, not f32", "where", f32(4), f32(4), f32(4)),
        _wrong("its type stated", "cast", f32(4)),
        _stated("changes the number", f32(5), "reshape", f32(4)),
        _stated(r"has shape \[4\]", f32(5), "cast", f32(4)),
        _wrong("not of 2 dimensions", "transpose", f32(4, 4), perm=(0,)),
        _wrong("dimension twice", "transpose", f32(4, 4), perm=(0, 0)),
        _wrong("out of range", "transpose", f32(4, 4), perm=(0, 2)),
        _stated("should have 1 entries", f32(4, 4), "broadcast", f32(4), dims=()),
        _stated("should rise", f32(4, 4), "broadcast", f32(4, 4), dims=(1, 0)),
        _stated("should rise", f32(4, 4), "broadcast", f32(4), dims=(2,)),
        _stated("does not broadcast", f32(4, 4), "broadcast", f32(2), dims=(0,)),
        _wrong("should have 1 entries", "slice", f32(4), starts=(0, 0), limits=(4,), steps=(1,)),
        _wrong("at least 1", "slice", f32(4), starts=(0,), limits=(4,), steps=(0,)),
        _wrong("outside 0..4", "slice", f32(4), starts=(0,), limits=(5,), steps=(1,)),
        _wrong("outside 0..4", "slice", f32(4), starts=(3,), limits=(2,), steps=(1,)),
        _wrong("concat along 0", "concat", f32(4, 2), f32(4, 3), axis=0),
        _wrong("concat along 0", "concat", f32(4), f32(4, 3), axis=0),
        _wrong("is a scalar", "pad", f32(4), f32(1), low=(0,), high=(0,), interior=(0,)),
        _wrong("not be negative", "pad", f32(4), f32(), low=(0,), high=(0,), interior=(-1,)),
        _wrong("less than nothing", "pad", f32(4), f32(), low=(-3,), high=(-2,), interior=(0,)),
        _wrong("axis 1 of softmax is out of range", "softmax", f32(4), axis=1),
        _wrong("axis -1 of softmax is out of range", "softmax", f32(4), axis=-1),
        _wrong("dimension twice", "reverse", f32(4, 4), axes=(1, 1)),
        _wrong("at 1 starts", "update_slice", f32(4), f32(2, 2), starts=(0,)),
        _wrong("outside 0..4", "update_slice", f32(4), f32(2), starts=(3,)),
        _wrong("writes i64 into f32", "update_slice", f32(4), i64(2), starts=(0,)),
        _wrong("takes 1 starts", "dynamic_slice", f32(4), sizes=(2,)),
        _wrong("integer scalars", "dynamic_slice", f32(4), f32(), sizes=(2,)),
        _wrong("exceed", "dynamic_slice", f32(4), i64(), sizes=(5,)),
        _wrong("dynamic_update_slice of", "dynamic_update_slice", f32(4), f32(5), i64()),
        _wrong("needs two dimensions", "tril", f32(4), k=0),
        _wrong("one '->'", "einsum", f32(4), spec="a"),
        _wrong("letters a-zA-Z", "einsum", f32(4), spec="...a->a"),
        _wrong("repeats a letter", "einsum", f32(4, 4), spec="aa->a"),
        _wrong("no operand has", "einsum", f32(4), spec="a->b"),
        _wrong("of 2 operands, not 1", "einsum", f32(4), spec="a,b->ab"),
        _wrong("'ab' against", "einsum", f32(4), spec="ab->a"),
        _wrong("is both 4 and 3", "einsum", f32(4), f32(3), spec="a,a->a"),
        _wrong("conv of", "conv", f32(2, 3, 8), f32(4, 3), **CONV),
        _wrong("conv of 3 channels in 1 groups", "conv", f32(2, 3, 8), f32(4, 2, 3), **CONV),
        _wrong("does not fit into 8", "conv", f32(2, 3, 8), f32(4, 3, 9), **CONV),
        _wrong("not be negative", "conv", f32(2, 3, 8), f32(4, 3, 3), **{**CONV, "padding": ((-1, 0),)}),
        _wrong("should be at least 1", "conv", f32(2, 3, 8), f32(4, 3, 3), **{**CONV, "dilation": (0,)}),
        _wrong("should have 1 entries", "conv", f32(2, 3, 8), f32(4, 3, 3), **{**CONV, "strides": (1, 1)}),
        _wrong("an empty dimension", "reduce", f32(0), kind="max", axes=(0,), keepdims=False),
        _wrong("an empty dimension", "argmax", f32(0), axis=0, keepdims=False),
        _wrong("of 5 among 4", "topk_values", f32(4), k=5, axis=0, largest=True),
        _wrong("of complex", "topk_values", C64, k=1, axis=0, largest=True),
        _wrong("is of floats, not i64", "softmax", i64(4), axis=0),
        _wrong("should rise", "layer_norm", f32(4, 4), axes=(1, 0), eps=0.1),
        _wrong("weights of rms_norm", "rms_norm", f32(4, 3), f32(4), axes=(1,), eps=0.1),
        _wrong("in 3 groups", "group_norm", f32(2, 4), groups=3, eps=0.1),
        _wrong("weights of batch_norm", "batch_norm", f32(2, 4), f32(2), f32(2), eps=0.1),
        _wrong("3 query heads", "attention", f32(3, 2, 8), f32(2, 2, 8), f32(2, 2, 8), **ATTENTION),
        _wrong("attention of q", "attention", f32(2, 2, 8), f32(2, 2, 7), f32(2, 2, 8), **ATTENTION),
        _wrong(
            "the mask of attention is bool or float",
            *("attention", f32(2, 2, 8), f32(2, 2, 8), f32(2, 2, 8), i64(2, 2)),
            **ATTENTION,
        ),
        _wrong(
            "does not broadcast to",
            *("attention", f32(2, 2, 8), f32(2, 2, 8), f32(2, 2, 8), f32(5, 2, 2, 2)),
            **ATTENTION,
        ),
        _wrong("cross_entropy of", "cross_entropy", f32(4, 9), i64(3), ignore_index=0, reduction="sum"),
        _wrong("is of integers", "cross_entropy", f32(4, 9), f32(4), ignore_index=0, reduction="sum"),
        _stated(
            "should have 1 entries",
            f32(1, 1, 8),
            *("interpolate", f32(1, 1, 4)),
            mode="nearest",
            align_corners=False,
            scales=(),
        ),
        _wrong("wholly in the padding", "max_pool", f32(1, 1, 8), **{**MAX_POOL, "padding": ((3, 0),)}),
        _wrong(r"not \[N,C,\*S\]", "avg_pool", f32(8, 8), **WINDOW, count_padding=True),
        _wrong("are integers", "take", f32(4), f32(2), axis=0),
        _wrong("take_along axis 0", "take_along", f32(4, 4), i64(2, 3), axis=0),
        _wrong("scatter of", "scatter", f32(4), i64(3), f32(2), axis=0, mode="set"),
        _wrong("2 indices into", "index_put", f32(4), f32(), i64(), i64(), mode="set"),
        _wrong("is addressed", "index_put", f32(4, 2), f32(1, 5, 2), i64(5), mode="set"),
        _wrong("fewer than no classes", "one_hot", i64(4), classes=-1),
        _wrong("its type stated", "constant"),
        _stated("either data or a digest", f32(4), "constant"),
        _stated("either data or a digest", f32(4), "constant", data=(1.0,), digest="00"),
        _stated("4 elements holds 3", f32(4), "constant", data=(1.0, 2.0, 3.0)),
        _stated("numbers of another kind", i64(), "constant", data=(1.0,)),
        _stated("numbers of another kind", TensorType("bool", ()), "constant", data=(1,)),
        _stated("has a digest", f32(70_000), "constant", data=(1.0,) * 70_000),
        _wrong("at least 1", "rank", stride=0, size=2),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    op: str,
    operands: tuple[TensorType, ...],
    attrs: dict[str, Attr],
    declared: TensorType | None,
    message: str,
) -> None:
    with pytest.raises(InvalidGraph, match=message):
        type_of(op, operands, MappingProxyType(attrs), declared=declared)


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "wanted"),
    [
        ("add", (f32(4, 1), f32(3)), {}, f32(4, 3)),
        ("add", (i64(4), f32()), {}, f32(4)),
        ("add", (BOOL, BOOL), {}, BOOL),
        ("div", (i64(4), i64()), {}, f32(4)),
        ("abs", (C64,), {}, f32(4)),
        ("eq", (C64, C64), {}, BOOL),
        ("pad", (f32(3), f32()), {"low": (-1,), "high": (2,), "interior": (1,)}, f32(6)),
        ("slice", (f32(7),), {"starts": (1,), "limits": (6,), "steps": (2,)}, f32(3)),
        ("reduce", (BOOL,), {"kind": "sum", "axes": (0,), "keepdims": True}, i64(1)),
        ("reduce", (i64(4, 2),), {"kind": "mean", "axes": (), "keepdims": False}, f32(4, 2)),
        ("take", (f32(9, 5), i64(2, 3)), {"axis": 0}, f32(2, 3, 5)),
        ("cross_entropy", (f32(4, 9), i64(4)), {"ignore_index": -100, "reduction": "none"}, f32(4)),
    ],
)
def test_a_type_follows_from_the_operands(
    op: str, operands: tuple[TensorType, ...], attrs: dict[str, Attr], wanted: TensorType
) -> None:
    assert type_of(op, operands, attrs) == wanted


dtypes = st.sampled_from(DTYPES)


@given(dtypes, dtypes)
def test_promotion_is_symmetric_and_of_the_wider_kind(first: DType, second: DType) -> None:
    assert promote(first, second) == promote(second, first)
    assert KIND_OF[promote(first, second)] == widest_kind((first, second))
    assert promote(first, first) == first


def test_what_was_typed_before_does_not_excuse_another_kind_of_attribute() -> None:
    """1 == 1.0 == True: what is remembered of one must not answer for another."""
    x = TensorType("f32", (2, 3))
    attrs = {"kind": "sum", "axes": (1,), "keepdims": True}
    type_of("reduce", (x,), attrs)
    with pytest.raises(InvalidGraph):
        type_of("reduce", (x,), {**attrs, "keepdims": 1})
    with pytest.raises(InvalidGraph):
        type_of("reduce", (x,), {**attrs, "axes": (1.0,)})
