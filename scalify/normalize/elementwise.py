"""Point-wise ops: canonical forms over the reals.

A division is a product with a reciprocal, a difference a sum with a negation, ``silu(x)`` is
``x * sigmoid(x)``: one spelling each, so that programs that spell them differently become the same
terms. Casts between kinds of floats vanish: the claim is equality over the reals, and reports say so.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import pi, sqrt

from scalify.ir.graph import DType, Node
from scalify.ir.ops.dtypes import INTEGER_BITS, KIND_OF
from scalify.layout.digits import bounds, scaled, summed
from scalify.normalize.lowering import Lower, Lowering
from scalify.normalize.terms import INDEX_EXTENT, Access, number_of


def add(low: Lowering, one: Access, other: Access) -> Access:
    """A sum; zero vanishes, and sums of indices with whole numbers stay indices."""
    first, second = number_of(low.terms, one), number_of(low.terms, other)
    if first is not None and second is not None:
        return low.fraction(first + second, low.common(one, other))
    if second == 0 and _covers(one, other):
        return one
    if first == 0 and _covers(other, one):
        return other
    masked = _masked_sum(low, one, other) or _masked_sum(low, other, one)
    if masked is not None:
        return masked
    if _is_index(low, one) and _is_index(low, other):
        shifted = _index_sum(low, one, other)
        if shifted is not None:
            return shifted
    return low.point("add", one, other)


def _masked_sum(low: Lowering, x: Access, mask: Access) -> Access | None:
    """``x`` plus (0 where allowed, else minus infinity) is ``x`` where allowed, else minus infinity."""
    term = low.terms[mask.term]
    if term.op != "where" or number_of(low.terms, term.operands[1]) != 0:
        return None
    if low.terms[term.operands[2].term].op != "number:-inf":
        return None
    allowed = low.terms.read(mask.index, term.operands[0])
    fill = low.terms.special((low.ranks,), "-inf")
    return None if allowed is None else low.point("where", allowed, x, fill)


def multiply(low: Lowering, one: Access, other: Access) -> Access:
    """A product, constants last; one vanishes, and whole multiples of indices stay indices."""
    first, second = number_of(low.terms, one), number_of(low.terms, other)
    if first is not None and second is not None:
        return low.fraction(first * second, low.common(one, other))
    if first is not None:
        one, other, second = other, one, first
    if second is None:
        return low.point("mul", one, other)
    if second == 1 and _covers(one, other):
        return one
    if second.denominator == 1 and second > 0 and _is_index(low, one) and _covers(one, other):
        expr = scaled(one.index.coordinates[1], int(second))
        if bounds(expr)[1] < INDEX_EXTENT:
            return low.terms.index(one.index.domain, expr)
    return low.point("mul", one, other)


def negate(low: Lowering, x: Access) -> Access:
    """Minus ``x``, as a product: scales are rational factors everywhere."""
    return multiply(low, x, low.fraction(Fraction(-1), (low.ranks,)))


def reciprocal(low: Lowering, x: Access) -> Access:
    """One over ``x``."""
    value = number_of(low.terms, x)
    if value:
        return low.fraction(1 / value, x.index.domain)
    inner = low.terms[x.term]
    if inner.op == "reciprocal":
        back = low.terms.read(x.index, inner.operands[0])
        if back is not None:
            return back
    return low.point("reciprocal", x)


def divide(low: Lowering, one: Access, other: Access) -> Access:
    """A quotient, as a product with a reciprocal."""
    return multiply(low, one, reciprocal(low, other))


def subtract(low: Lowering, one: Access, other: Access) -> Access:
    """A difference, as a sum with a negation."""
    return add(low, one, negate(low, other))


def square_root(low: Lowering, x: Access) -> Access:
    """The square root; of a number only where it is rational."""
    return low.point("sqrt", x)


def sigmoid(low: Lowering, x: Access) -> Access:
    """The logistic function, kept as one op: nothing is gained by taking it apart."""
    return low.point("sigmoid", x)


def power(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A power; small whole exponents are products, halves are roots. Powers of whole numbers are whole."""
    x, exponent = operands
    x = low.spread(x, low.common(x, exponent))
    value = number_of(low.terms, exponent)
    if value is not None and value.denominator == 1 and 1 <= value <= 4:
        return _repeated(low, x, int(value))
    if KIND_OF[node.type.dtype] == "int":
        return low.point("whole_pow", x, exponent)
    if value == Fraction(1, 2):
        return square_root(low, x)
    if value == Fraction(-1, 2):
        return reciprocal(low, square_root(low, x))
    return reciprocal(low, x) if value == -1 else low.point("pow", x, exponent)


def _repeated(low: Lowering, x: Access, count: int) -> Access:
    product = x
    for _ in range(count - 1):
        product = low.point("mul", product, x) if product is x else multiply(low, product, x)
    return product


def gelu(low: Lowering, x: Access, approximate: str) -> Access:
    """The Gaussian error linear unit, by its definition: with erf, or with the tanh approximation."""
    half = low.fraction(Fraction(1, 2), (low.ranks,))
    one = low.fraction(Fraction(1), (low.ranks,))
    if approximate == "none":
        inner = low.point("erf", multiply(low, x, low.number(1 / sqrt(2), (low.ranks,))))
    else:
        cube = _repeated(low, x, 3)
        bent = add(low, x, multiply(low, cube, low.number(0.044715, (low.ranks,))))
        inner = low.point("tanh", multiply(low, bent, low.number(sqrt(2 / pi), (low.ranks,))))
    return multiply(low, multiply(low, x, half), add(low, inner, one))


def cast(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Between floats, and from whole numbers to floats, the value stays; what loses something is an op."""
    (x,) = operands
    source, target = low.types[node.operands[0]].dtype, node.type.dtype
    if KIND_OF[source] == "complex" and KIND_OF[target] != "complex":
        x = low.point("real", x)
    if KIND_OF[target] in ("float", "complex"):
        return x
    if target == "bool":
        return x if source == "bool" else low.point("is_nonzero", x)
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
    return low.point("or", *operands) if node.type.dtype == "bool" else add(low, *operands)


def inverted(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """The other truth value, or the other bits: which ones these are depends on the width."""
    dtype = low.types[node.operands[0]].dtype
    return low.point("not" if dtype == "bool" else f"bit_not[{dtype}]", operands[0])


def shifted_left(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Bits beyond the width are lost."""
    return low.point(f"shift_left[{low.types[node.operands[0]].dtype}]", *operands)


def softplus(low: Lowering, x: Access) -> Access:
    """``log(1 + exp(x))``."""
    return low.point("log", add(low, low.point("exp", x), _whole(low, 1)))


def clamp(low: Lowering, least: Access, x: Access, most: Access) -> Access:
    """Neither below ``least`` nor above ``most``, which wins where they cross."""
    return low.point("min", low.point("max", x, least), most)


def _covers(access: Access, other: Access) -> bool:
    """Whether ``access`` already has the shape of the two broadcast together."""
    shape, seen = access.index.domain[1:], other.index.domain[1:]
    return len(shape) >= len(seen) and all(
        n in (1, m) for n, m in zip(reversed(seen), reversed(shape), strict=False)
    )


def _is_index(low: Lowering, access: Access) -> bool:
    return low.terms[access.term].op == "index"


def _index_sum(low: Lowering, one: Access, other: Access) -> Access | None:
    pair = low.common(one, other)
    first, second = low.spread(one, pair), low.spread(other, pair)
    left, right = first.index.coordinates[1], second.index.coordinates[1]
    keys = {(t.dim, t.stride, t.size) for t in left.terms}
    if any(t.dim in {d for d, _, _ in keys} and (t.dim, t.stride, t.size) not in keys for t in right.terms):
        return None
    expr = summed(left.offset + right.offset, [*left.terms, *right.terms])
    return low.terms.index(pair, expr) if bounds(expr)[0] >= 0 and bounds(expr)[1] < INDEX_EXTENT else None


def _unary(op: str) -> Lower:
    return lambda low, node, operands: low.point(op, operands[0])


def _binary(op: str) -> Lower:
    return lambda low, node, operands: low.point(op, operands[0], operands[1])


def _swapped(op: str) -> Lower:
    return lambda low, node, operands: low.point(op, operands[1], operands[0])


def _made(function: Callable[..., Access]) -> Lower:
    return lambda low, node, operands: function(low, *operands)


def _with_number(op: str, attr: str) -> Lower:
    return lambda low, node, operands: low.point(f"{op}[{node.attrs[attr]}]", operands[0])


def _whole(low: Lowering, value: int) -> Access:
    return low.fraction(Fraction(value), (low.ranks,))


ELEMENTWISE: Mapping[str, Lower] = {
    **{op: _unary(op) for op in (
        "abs", "exp", "log", "sin", "cos", "tan", "tanh", "atan", "sigmoid", "erf", "floor", "ceil", "round",
        "trunc", "sign", "is_finite", "is_nan", "sqrt",
    )},
    **{op: _binary(op) for op in (
        "floordiv", "mod", "rem", "max", "min", "eq", "ne", "lt", "le", "and", "or", "xor", "atan2",
        "shift_right",
    )},
    "gt": _swapped("lt"),
    "ge": _swapped("le"),
    "add": sum_or_either,
    "sub": _made(subtract),
    "mul": _made(multiply),
    "div": _made(divide),
    "neg": _made(negate),
    "reciprocal": _made(reciprocal),
    "rsqrt": lambda low, node, operands: reciprocal(low, square_root(low, operands[0])),
    "square": lambda low, node, operands: low.point("mul", operands[0], operands[0]),
    "pow": power,
    "not": inverted,
    "shift_left": shifted_left,
    "exp2": lambda low, node, operands: low.point("pow", _whole(low, 2), operands[0]),
    "expm1": lambda low, node, operands: subtract(low, low.point("exp", operands[0]), _whole(low, 1)),
    "log1p": lambda low, node, operands: low.point("log", add(low, operands[0], _whole(low, 1))),
    "log2": lambda low, node, operands: low.point("log2", operands[0]),
    "softplus": lambda low, node, operands: softplus(low, operands[0]),
    "relu": lambda low, node, operands: low.point("max", operands[0], _whole(low, 0)),
    "silu": lambda low, node, operands: multiply(low, operands[0], sigmoid(low, operands[0])),
    "gelu": lambda low, node, operands: gelu(low, operands[0], str(node.attrs["approximate"])),
    "leaky_relu": _with_number("leaky_relu", "slope"),
    "cast": cast,
    "where": lambda low, node, operands: low.point("where", *operands),
    "clamp": lambda low, node, operands: clamp(low, *operands),
}  # fmt: skip
