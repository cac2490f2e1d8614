"""Sums of products, all written as einsum."""

from string import ascii_letters
from types import MappingProxyType

from scalify.load.onnx.meaning.elementwise import applied, number
from scalify.load.onnx.model import damaged
from scalify.load.onnx.operation import Meanings, Operation, Unmodelled
from scalify.load.onnx.tensors import as_written
from scalify.load.torch_export.emit import Wire


def matmul(op: Operation, left: Wire, right: Wire) -> Wire:
    """numpy.matmul: vectors contract whole, batches broadcast. Legend: x rows, y contracted, z columns."""
    if not left.shape or not right.shape:
        raise damaged(f"{op.what} multiplies a number as a matrix")
    rows, columns = len(left.shape) > 1, len(right.shape) > 1
    count = max(len(left.shape), len(right.shape), 2) - 2
    if count > len(ascii_letters) - 3:
        raise Unmodelled("more dimensions than letters")
    letters = ascii_letters[:count]
    one, first = _batch(op, left, right, letters) if rows else (left, "")
    other, second = _batch(op, right, left, letters) if columns else (right, "")
    target = "".join(letter for letter in letters if letter in first + second)
    target += ("x" if rows else "") + ("z" if columns else "")
    spec = f"{first}{'xy' if rows else 'y'},{second}{'yz' if columns else 'y'}->{target}"
    return op.emit.einsum(spec, one, other, dtype=left.dtype)


def _batch(op: Operation, wire: Wire, beside: Wire, letters: str) -> tuple[Wire, str]:
    """Letters for the batch; a size of 1 is dropped where the other operand has that dimension."""
    sizes = dict(zip(reversed(letters), reversed(wire.shape[:-2]), strict=False))
    others = dict(zip(reversed(letters), reversed(beside.shape[:-2]), strict=False))
    kept = [letter for letter in sizes if sizes[letter] != 1 or others.get(letter, 1) == 1]
    kept.sort(key=letters.index)
    shape = (*(sizes[letter] for letter in kept), *wire.shape[-2:])
    return op.emit.reshape(wire, shape), "".join(kept)


def _matmul(op: Operation) -> Wire:
    return matmul(op, op.tensor(0), op.tensor(1))


def _gemm(op: Operation) -> Wire:
    left, right = op.tensor(0), op.tensor(1)
    if len(left.shape) != 2 or len(right.shape) != 2:
        raise damaged(f"{op.what} multiplies {list(left.shape)} by {list(right.shape)}")
    first = "yx" if op.integer("transA", 0) else "xy"
    second = "zy" if op.integer("transB", 0) else "yz"
    made = _scaled(op, op.emit.einsum(f"{first},{second}->xz", left, right, dtype=left.dtype), "alpha")
    return applied(op, "add", made, _scaled(op, op.tensor(2), "beta")) if op.has(2) else made


def _scaled(op: Operation, wire: Wire, name: str) -> Wire:
    factor = as_written(op.number(name, 1.0))
    return wire if factor == 1 else applied(op, "mul", wire, number(op, wire, factor))


def _einsum(op: Operation) -> Wire:
    """The equation without ellipses, with its result stated; sizes of 1 beside larger ones are opaque."""
    wires = op.tensors()
    spec = _explicit(op, op.text("equation", "").replace(" ", ""), [len(wire.shape) for wire in wires])
    terms = spec.partition("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, wire in zip(terms, wires, strict=True):
        if len(set(term)) < len(term):
            raise Unmodelled("an einsum of a diagonal")
        for letter, size in zip(term, wire.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise Unmodelled("an einsum that broadcasts")
    return op.emit.einsum(spec, *wires, dtype=wires[0].dtype)


def _explicit(op: Operation, equation: str, ranks: list[int]) -> str:
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    free = [letter for letter in reversed(ascii_letters) if letter not in equation]
    if len(terms) != len(ranks):
        raise damaged(f"{op.what} has {len(terms)} terms for {len(ranks)} tensors")
    hidden = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    if any(n < 0 or n > len(free) or (n and "..." not in t) for t, n in zip(terms, hidden, strict=True)):
        raise damaged(f"the equation of {op.what} does not fit its tensors")
    width = max(n if "..." in term else 0 for term, n in zip(terms, hidden, strict=True))
    dots = "".join(free[:width])
    full = [term.replace("...", dots[width - n :]) for term, n in zip(terms, hidden, strict=True)]
    if arrow:
        return f"{','.join(full)}->{right.replace('...', dots)}"
    plain = "".join(term.replace("...", "") for term in terms)
    return f"{','.join(full)}->{dots}{''.join(sorted(c for c in set(plain) if plain.count(c) == 1))}"


CONTRACTION: Meanings = MappingProxyType({"MatMul": _matmul, "Gemm": _gemm, "Einsum": _einsum})
