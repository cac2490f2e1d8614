"""Products of matrices, all written as einsum. Legend: b batch, i rows, k contracted, j columns."""

from string import ascii_letters
from types import MappingProxyType

from scalify.ir.graph import DType
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.operation import Meanings, Operation, Unmodelled


def linear(op: Operation, x: Wire, weight: Wire, dtype: DType) -> Wire:
    """x [..., K] with weight [O, K]: every leading dimension of x is a row."""
    lead = ascii_letters[: len(x.shape) - 1]
    if len(weight.shape) == 1:
        return op.emit.einsum(f"{lead}y,y->{lead}", x, weight, dtype=dtype)
    return op.emit.einsum(f"{lead}y,zy->{lead}z", x, weight, dtype=dtype)


def _linear(op: Operation) -> Wire:
    dtype = op.result.dtype
    made = linear(op, op.tensor("input"), op.tensor("weight"), dtype)
    bias = op.maybe_tensor("bias")
    return op.emit.elementwise("add", made, bias, dtype=dtype) if bias else made


def matmul(op: Operation, left: Wire, right: Wire, dtype: DType) -> Wire:
    """torch.matmul: vectors contract whole, batches broadcast."""
    rows, columns = len(left.shape) > 1, len(right.shape) > 1
    if not left.shape or not right.shape:
        raise damaged(f"{op.call.name} multiplies a number as a matrix")
    rank = max(len(left.shape) - 2, len(right.shape) - 2, 0)
    if rank > len(ascii_letters) - 3:
        raise Unmodelled("more dimensions than letters")
    batch = ascii_letters[:rank]
    first = _without_repeats(op, left, right, batch) if rows else (left, "")
    second = _without_repeats(op, right, left, batch) if columns else (right, "")
    return _product(op, first, second, (rows, columns), batch, dtype)


def _product(
    op: Operation,
    left: tuple[Wire, str],
    right: tuple[Wire, str],
    matrices: tuple[bool, bool],
    batch: str,
    dtype: DType,
) -> Wire:
    first = left[1] + ("xy" if matrices[0] else "y")
    second = right[1] + ("yz" if matrices[1] else "y")
    kept = "".join(letter for letter in batch if letter in left[1] or letter in right[1])
    target = kept + ("x" if matrices[0] else "") + ("z" if matrices[1] else "")
    return op.emit.einsum(f"{first},{second}->{target}", left[0], right[0], dtype=dtype)


def _without_repeats(op: Operation, wire: Wire, beside: Wire, batch: str) -> tuple[Wire, str]:
    """Batch dimensions of size 1 dropped where the other operand's are larger, and letters for the rest."""
    own = wire.shape[:-2]
    letters = batch[len(batch) - len(own) :] if own else ""
    against = ((1,) * len(batch) + beside.shape[:-2])[-len(batch) :] if batch else ()
    kept = [
        place for place, size in enumerate(own) if size != 1 or against[len(batch) - len(own) + place] == 1
    ]
    shape = (*(own[place] for place in kept), *wire.shape[-2:])
    return op.emit.reshape(wire, shape), "".join(letters[place] for place in kept)


def _matmul(op: Operation) -> Wire:
    return matmul(op, op.tensor("self"), op.tensor("mat2" if op.has("mat2") else "other"), op.result.dtype)


def _vector(op: Operation) -> Wire:
    return matmul(op, op.tensor("self"), op.tensor("vec" if op.has("vec") else "tensor"), op.result.dtype)


def _outer(op: Operation) -> Wire:
    return op.emit.einsum("x,z->xz", op.tensor("self"), op.tensor("vec2"), dtype=op.result.dtype)


def _scaled_sum(op: Operation, first: str, second: str) -> Wire:
    """beta * self + alpha * (first @ second); self is not read where beta is zero."""
    dtype = op.result.dtype
    made = matmul(op, op.tensor(first), op.tensor(second), dtype)
    alpha, beta = op.number("alpha", 1), op.number("beta", 1)
    if alpha != 1:
        made = op.emit.elementwise("mul", made, op.emit.constant(dtype, alpha), dtype=dtype)
    if beta == 0:
        return made
    term = op.tensor("self")
    if beta != 1:
        term = op.emit.elementwise("mul", term, op.emit.constant(dtype, beta), dtype=dtype)
    return op.emit.elementwise("add", term, made, dtype=dtype)


def _einsum(op: Operation) -> Wire:
    """The equation without spaces and ellipses; letters of size 1 beside larger ones do not broadcast."""
    wires = op.tensors("tensors")
    spec = explicit(op, op.text("equation", ""), [len(wire.shape) for wire in wires])
    terms = spec.split("->")[0].split(",")
    if any(len(set(term)) != len(term) for term in terms):
        raise Unmodelled("an einsum of a diagonal")
    sizes: dict[str, int] = {}
    for term, wire in zip(terms, wires, strict=True):
        for letter, size in zip(term, wire.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise Unmodelled("an einsum that broadcasts")
    return op.emit.einsum(spec, *wires, dtype=op.result.dtype)


def explicit(op: Operation, equation: str, ranks: list[int]) -> str:
    """An equation with its result stated and letters for ellipses."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise damaged(f"{op.call.name} has an equation of {len(terms)} terms and {len(ranks)} tensors")
    free = [letter for letter in reversed(ascii_letters) if letter not in equation]
    hidden = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    width = max([0, *(count for term, count in zip(terms, hidden, strict=True) if "..." in term)])
    if width > len(free) or any(
        count < 0 or (count and "..." not in term) for term, count in zip(terms, hidden, strict=True)
    ):
        raise damaged(f"{op.call.name} has an equation that does not fit its tensors")
    dots = "".join(free[:width])
    full = [term.replace("...", dots[width - count :]) for term, count in zip(terms, hidden, strict=True)]
    if arrow:
        return f"{','.join(full)}->{right.replace('...', dots)}"
    once = sorted(letter for letter in set("".join(terms)) - {"."} if "".join(terms).count(letter) == 1)
    return f"{','.join(full)}->{dots}{''.join(once)}"


CONTRACTION: Meanings = MappingProxyType({
    "aten.linear": _linear,
    "aten.matmul": _matmul,
    "aten.__matmul__": _matmul,
    "aten.mm": _matmul,
    "aten.bmm": _matmul,
    "aten.mv": _vector,
    "aten.dot": _vector,
    "aten.outer": _outer,
    "aten.ger": _outer,
    "aten.addmm": lambda op: _scaled_sum(op, "mat1", "mat2"),
    "aten.addmv": lambda op: _scaled_sum(op, "mat", "vec"),
    "aten.baddbmm": lambda op: _scaled_sum(op, "batch1", "batch2"),
    "aten.einsum": _einsum,
})  # fmt: skip
