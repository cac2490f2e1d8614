"""Point-wise ops: canonical forms over the reals.

A division is a product with a reciprocal, a difference a sum with a negation, ``silu(x)`` is
``x * sigmoid(x)``: one spelling each, so that programs that spell them differently become the same
terms. Casts between kinds of floats vanish: the claim is equality over the reals, and reports say so.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import pi, sqrt

from scalify.ir.graph import DType, Node
from scalify.ir.ops.dtypes import INTEGER_BITS, KIND_OF
from scalify.layout.digits import bounds
from scalify.normalize.choices import both, equal, is_truth, negated, of_truth, where
from scalify.normalize.exponentials import exp, log
from scalify.normalize.indices import compared
from scalify.normalize.lookups import settled
from scalify.normalize.lowering import Lower, Lowering
from scalify.normalize.movement import concatenated, cut, pieces_of
from scalify.normalize.products import divide, multiply, negate, power, reciprocal
from scalify.normalize.sums import add, subtract
from scalify.normalize.terms import Access, number_of

MOST_PIECES = 16
MOST_PIECES_OF_TWO = 4


def raised(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A power; those of whole numbers are whole."""
    x, exponent = operands
    value = number_of(low.terms, exponent)
    if KIND_OF[node.type.dtype] == "int" and (value is None or value < 1):
        return low.point("whole_pow", x, exponent)
    return power(low, low.spread(x, low.common(x, exponent)), exponent)


def gelu(low: Lowering, x: Access, approximate: str) -> Access:
    """The Gaussian error linear unit, by its definition: with erf, or with the tanh approximation."""
    half = low.fraction(Fraction(1, 2), (low.ranks,))
    one = low.fraction(Fraction(1), (low.ranks,))
    if approximate == "none":
        inner = low.point("erf", multiply(low, x, low.number(1 / sqrt(2), (low.ranks,))))
    else:
        cube = power(low, x, low.fraction(Fraction(3), (low.ranks,)))
        bent = add(low, x, multiply(low, cube, low.number(0.044715, (low.ranks,))))
        inner = low.point("tanh", multiply(low, bent, low.number(sqrt(2 / pi), (low.ranks,))))
    return multiply(low, multiply(low, x, half), add(low, inner, one))


def cast(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Between floats, and from whole numbers to floats, the value stays; what loses something is an op."""
    (x,) = operands
    source, target = low.types[node.operands[0]].dtype, node.type.dtype
    if KIND_OF[source] == "complex" and KIND_OF[target] in ("float", "int"):
        x = low.point("real", x)
    if KIND_OF[target] in ("float", "complex"):
        return x
    if target == "bool":
        return x if source == "bool" or is_truth(low, x) else low.point("is_nonzero", x)
    if KIND_OF[source] in ("float", "complex"):
        x, source = low.point("trunc", x), "i64"
    return x if _holds(low, target, source, x) else low.point(f"wrap[{target}]", x)


def _holds(low: Lowering, target: DType, source: DType, x: Access) -> bool:
    """Whether integers of ``source`` stay what they are. From 32 bits on, signed ones are taken to fit."""
    if (
        source == "bool"
        or source == target
        or (target[0] == "i" and INTEGER_BITS[target] >= 32 and source[0] == "i")
    ):
        return True
    least, most = _range(source)
    if _is_index(low, x):
        least, most = bounds(x.index.coordinates[1])
    low_end, high_end = _range(target)
    return low_end <= least and most <= high_end


def _range(dtype: DType) -> tuple[int, int]:
    bits = INTEGER_BITS[dtype]
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def sum_or_either(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A sum; of truth values, whether either holds."""
    if node.type.dtype == "bool":
        return low.point("or", *operands)
    return _by_pieces(low, add, *operands)


def inverted(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """The other truth value, or the other bits: which ones these are depends on the width."""
    dtype = low.types[node.operands[0]].dtype
    return negated(low, operands[0]) if dtype == "bool" else low.point(f"bit_not[{dtype}]", operands[0])


def comparison(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A comparison; greater is less the other way round."""
    one, other = reversed(operands) if node.op in ("gt", "ge") else operands
    op = {"gt": "lt", "ge": "le"}.get(node.op, node.op)
    written = compared(low, op, one, other)
    if written is None:
        written = of_truth(low, op, one, other)
    if written is not None:
        return written
    return equal(low, one, other) if op == "eq" else low.point(op, one, other)


def times(low: Lowering, one: Access, other: Access) -> Access:
    """A product, in which conditions that a look-up implies are left out."""
    return _by_pieces(low, _product, one, other)


def _product(low: Lowering, one: Access, other: Access) -> Access:
    return settled(low, multiply(low, one, other))


def chosen(low: Lowering, condition: Access, one: Access, other: Access) -> Access:
    """A choice, likewise."""
    return settled(low, where(low, condition, one, other))


def conjunction(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Whether both hold; of whole numbers, the bits that both have."""
    return both(low, *operands) if node.type.dtype == "bool" else low.point("and", *operands)


def shifted_left(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Bits beyond the width are lost."""
    return low.point(f"shift_left[{low.types[node.operands[0]].dtype}]", *operands)


def logarithm(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """The inverse of the exponential on the reals; of complex numbers the logarithm forgets whole turns."""
    is_complex = KIND_OF[node.type.dtype] == "complex"
    return low.point("log", *operands) if is_complex else log(low, *operands)


def softplus(low: Lowering, x: Access) -> Access:
    """``log(1 + exp(x))``."""
    return log(low, add(low, exp(low, x), _whole(low, 1)))


def clamp(low: Lowering, least: Access, x: Access, most: Access) -> Access:
    """Neither below ``least`` nor above ``most``, which wins where they cross."""
    return low.point("min", low.point("max", x, least), most)


def _is_index(low: Lowering, access: Access) -> bool:
    return low.terms[access.term].op == "index"


def _unary(op: str) -> Lower:
    return lambda low, node, operands: _piece_by_piece(low, op, operands[0])


def _piece_by_piece(low: Lowering, op: str, x: Access) -> Access:
    """An operation on what is put together of pieces is put together of that on each."""
    axis = next((dim for dim in range(1, len(x.index.domain)) if len(pieces_of(low, dim, x)) > 1), None)
    pieces = [] if axis is None else pieces_of(low, axis, x)
    if axis is None or len(pieces) > MOST_PIECES:
        return low.point(op, x)
    return concatenated(low, axis, [_piece_by_piece(low, op, piece) for piece in pieces])


Both = Callable[[Lowering, Access, Access], Access]


def _by_pieces(low: Lowering, both: Both, one: Access, other: Access) -> Access:
    """An operation on two values of which one is put together of a few pieces, as in rotary embeddings."""
    if number_of(low.terms, one) is not None or number_of(low.terms, other) is not None:
        return both(low, one, other)
    domain = low.common(one, other)
    wide = low.spread(one, domain), low.spread(other, domain)
    for axis in range(1, len(domain)):
        cuts = {place for each in wide for place in _cuts(low, axis, each)}
        if 0 < len(cuts) < MOST_PIECES_OF_TWO:
            ends = pairwise([0, *sorted(cuts), domain[axis]])
            windows = [[cut(low, each, axis, *window) for each in wide] for window in ends]
            return concatenated(low, axis, [_by_pieces(low, both, *parts) for parts in windows])
    return both(low, one, other)


def _cuts(low: Lowering, axis: int, x: Access) -> list[int]:
    sizes = [piece.index.domain[axis] for piece in pieces_of(low, axis, x)]
    return list(accumulate(sizes))[:-1]


def _binary(op: str) -> Lower:
    return lambda low, node, operands: low.point(op, operands[0], operands[1])


def _made(function: Callable[..., Access]) -> Lower:
    return lambda low, node, operands: function(low, *operands)


def _with_number(op: str, attr: str) -> Lower:
    return lambda low, node, operands: low.point(f"{op}[{node.attrs[attr]}]", operands[0])


def _whole(low: Lowering, value: int) -> Access:
    return low.fraction(Fraction(value), (low.ranks,))


ELEMENTWISE: Mapping[str, Lower] = {
    **{op: _unary(op) for op in (
        "abs", "sin", "cos", "tan", "tanh", "atan", "sigmoid", "erf", "floor", "ceil", "round",
        "trunc", "sign", "is_finite", "is_nan", "sqrt",
    )},
    **{op: _binary(op) for op in (
        "floordiv", "mod", "rem", "max", "min", "or", "xor", "atan2",
        "shift_right",
    )},
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), comparison),
    "exp": _made(exp),
    "log": logarithm,
    "and": conjunction,
    "add": sum_or_either,
    "sub": lambda low, node, operands: _by_pieces(low, subtract, *operands),
    "mul": _made(times),
    "div": _made(divide),
    "neg": _made(negate),
    "reciprocal": _made(reciprocal),
    "rsqrt": lambda low, node, operands: reciprocal(low, low.point("sqrt", operands[0])),
    "square": lambda low, node, operands: multiply(low, operands[0], operands[0]),
    "pow": raised,
    "not": inverted,
    "shift_left": shifted_left,
    "exp2": lambda low, node, operands: low.point("pow", _whole(low, 2), operands[0]),
    "expm1": lambda low, node, operands: subtract(low, exp(low, operands[0]), _whole(low, 1)),
    "log1p": lambda low, node, operands: log(low, add(low, operands[0], _whole(low, 1))),
    "log2": lambda low, node, operands: low.point("log2", operands[0]),
    "softplus": lambda low, node, operands: softplus(low, operands[0]),
    "relu": lambda low, node, operands: low.point("max", operands[0], _whole(low, 0)),
    "silu": lambda low, node, operands: multiply(low, operands[0], low.point("sigmoid", operands[0])),
    "gelu": lambda low, node, operands: gelu(low, operands[0], str(node.attrs["approximate"])),
    "leaky_relu": _with_number("leaky_relu", "slope"),
    "cast": cast,
    "where": _made(chosen),
    "clamp": lambda low, node, operands: clamp(low, *operands),
}  # fmt: skip
