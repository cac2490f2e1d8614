"""Sums of products: einsum (every matmul is one) and convolution."""

import string

from scalify.ir.graph import TensorType
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.dtypes import promote
from scalify.ir.ops.meaning import contraction as means
from scalify.ir.ops.shapes import per_dimension, shown, windowed
from scalify.ir.ops.spec import Call, define, mistake

_LETTERS = frozenset(string.ascii_letters)


def split_spec(spec: str) -> tuple[tuple[str, ...], str]:
    """``"bik,bkj->bij"`` as the letters of each operand and those of the result."""
    left, arrow, result = spec.partition("->")
    if not arrow or "->" in result:
        raise mistake(f"einsum {spec!r} has one '->'")
    operands = tuple(left.split(","))
    for letters in (*operands, result):
        if not _LETTERS.issuperset(letters):
            raise mistake(f"einsum {spec!r} is of letters a-zA-Z, without spaces or '...'")
        if len(set(letters)) != len(letters):
            raise mistake(f"einsum {spec!r} repeats a letter within {letters!r}")
    if not set(result) <= set(left):
        raise mistake(f"einsum {spec!r} has a result letter that no operand has")
    return operands, result


def _einsum(call: Call) -> TensorType:
    """A letter has one size everywhere: a 1 does not stretch."""
    spec = call.text("spec")
    operands, result = split_spec(spec)
    if len(operands) != len(call.operands):
        raise mistake(f"einsum {spec!r} is of {len(operands)} operands, not {len(call.operands)}")
    sizes: dict[str, int] = {}
    for letters, operand in zip(operands, call.operands, strict=True):
        if len(letters) != len(operand.shape):
            raise mistake(f"einsum {spec!r}: {letters!r} against {shown(operand.shape)}")
        for letter, size in zip(letters, operand.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise mistake(f"einsum {spec!r}: {letter!r} is both {sizes[letter]} and {size}")
    dtype = promote(*call.dtypes())
    return TensorType(dtype, tuple(sizes[letter] for letter in result))


def _conv(call: Call) -> TensorType:
    """x [N,C,*S], w [O,C/groups,*K] -> [N,O,*S']. A correlation: the window is not flipped."""
    x, w, groups = call.shape(), call.shape(1), call.integer("groups")
    if len(x) < 3 or len(w) != len(x):
        raise mistake(f"conv of {shown(x)} with {shown(w)}")
    if groups < 1 or w[0] % groups or x[1] != w[1] * groups:
        raise mistake(f"conv of {x[1]} channels in {groups} groups with {shown(w)}")
    dilation = per_dimension(call, "dilation", len(x) - 2)
    spatial = windowed(call, x[2:], w[2:], dilation)
    return TensorType(promote(*call.dtypes()), (x[0], w[0], *spatial))


CONTRACTION = (
    define("einsum", (1, None), _einsum, means.einsum, spec=AttrSpec(kind="str")),
    define(
        "conv",
        2,
        _conv,
        means.conv,
        strides=AttrSpec(kind="ints"),
        padding=AttrSpec(kind="pairs"),
        dilation=AttrSpec(kind="ints"),
        groups=AttrSpec(kind="int", default=1),
    ),
)
