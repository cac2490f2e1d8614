"""Complex numbers as pairs: Program -> Program, in which a complex tensor is a real one that ends in 2.

In: a program with, say, rotary embeddings by ``view_as_complex`` and ``polar``. Out: the
same over real numbers::

    z = view_as_complex(x)      z = alias(x)                            [..., 2]
    w = mul(z, polar(r, a))     w = stack(re re' - im im', re im' + im re')

All or nothing: where a complex value meets anything that is not known here, or goes in or out of the program
in a way that shows, the program stays as it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from scalify.ir.graph import DType, TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.torch_export.program import Argument, Body, Call, DTypeName, Program, Ref, Value, ValueName

_REAL: Mapping[DType, DType] = {"c64": "f32", "c128": "f64"}


class _NoPair(Exception):
    """What this does to a complex number is not known."""


def in_pairs(program: Program) -> Program:
    """The program over pairs, if it has complex numbers that can all be written as such."""
    types = {parameter.name: parameter.type for parameter in program.parameters}
    if not any(map(_is_complex, types.values())) and not any(map(_makes_complex, program.calls)):
        return program
    try:
        calls = _Pairing(types).calls(program.calls)
    except _NoPair:
        return program
    shown = [result.value for result in program.results if isinstance(result.value, Ref)]
    if any(_is_complex(types[ref.name]) for ref in shown if ref.name in types):
        return program
    if any(one.data is not None and _is_complex(one.type) for one in program.parameters):
        return program
    parameters = tuple(replace(one, type=_paired(one.type)) for one in program.parameters)
    return replace(program, parameters=parameters, calls=calls)


def _is_complex(type_: TensorType) -> bool:
    return KIND_OF[type_.dtype] == "complex"


def _makes_complex(call: Call) -> bool:
    inner = [value for value in call.arguments.values() if isinstance(value, Body)]
    made = any(value is not None and _is_complex(value.type) for value in call.results)
    return made or any(_makes_complex(step) for body in inner for step in body.calls)


def _paired(type_: TensorType) -> TensorType:
    return TensorType(_REAL[type_.dtype], (*type_.shape, 2)) if _is_complex(type_) else type_


class _Pairing:
    """``types`` gathers the types that values have in the program as it was."""

    def __init__(self, types: dict[ValueName, TensorType]) -> None:
        self._types = types

    def calls(self, calls: tuple[Call, ...]) -> tuple[Call, ...]:
        return tuple(made for call in calls for made in self._call(call))

    def _call(self, call: Call) -> tuple[Call, ...]:
        refs = [ref for value in call.arguments.values() for ref in _refs(value)]
        self._types |= {value.name: value.type for value in call.results if value is not None}
        bodies = {name: value for name, value in call.arguments.items() if isinstance(value, Body)}
        for name, body in bodies.items():
            given = zip(body.inputs, refs, strict=True)
            self._types |= {inner: self._types[ref.name] for inner, ref in given if ref.name in self._types}
            made = replace(body, calls=self.calls(body.calls))
            call = replace(call, arguments=MappingProxyType({**call.arguments, name: made}))
        touches = [ref for ref in refs if ref.name in self._types and _is_complex(self._types[ref.name])]
        results = [value for value in call.results if value is not None and _is_complex(value.type)]
        if not touches and not results:
            return (call,)
        if bodies:
            return (_with_pairs(call),)
        base = call.target.removeprefix("aten.").partition(".")[0]
        rewrite = _REWRITES.get(base) if call.target.startswith("aten.") else None
        if rewrite is None:
            raise _NoPair
        step = _Step(call=call, types=self._types)
        rewrite(step)
        return tuple(step.made)


@dataclass(slots=True)
class _Step:
    """One call being written anew; ``made`` are the calls that replace it."""

    call: Call
    types: Mapping[ValueName, TensorType]
    made: list[Call] = field(default_factory=list[Call])

    def tensor(self, name: str) -> Ref:
        value = self.call.arguments.get(name)
        if not isinstance(value, Ref):
            raise _NoPair
        return value

    def is_complex(self, ref: Ref) -> bool:
        return _is_complex(self.types[ref.name])

    def shape(self, ref: Ref) -> tuple[int, ...]:
        return self.types[ref.name].shape

    @property
    def result(self) -> Value:
        (value,) = self.call.results
        if value is None:
            raise _NoPair
        return value

    def add(self, target: str, shape: tuple[int, ...], arguments: Mapping[str, Argument]) -> Ref:
        """A call more, over real numbers, whose result has this shape."""
        dtype = _paired(self.result.type).dtype
        name = f"{self.call.name}.{len(self.made)}"
        value = Value(name=ValueName(name), type=TensorType(dtype, shape))
        self.made.append(self._called(name, target, value, arguments))
        return Ref(value.name)

    def give(self, target: str, arguments: Mapping[str, Argument]) -> None:
        """The last call: what the one that it replaces is for."""
        value = replace(self.result, type=_paired(self.result.type))
        self.made.append(self._called(self.call.name, target, value, arguments))

    def part(self, ref: Ref, place: int) -> Ref:
        """The real part (0) or the imaginary part (1)."""
        shape = self.shape(ref)
        return self.add("aten.select.int", shape, {"self": ref, "dim": len(shape), "index": place})

    def _called(self, name: str, target: str, value: Value, arguments: Mapping[str, Argument]) -> Call:
        given = MappingProxyType(dict(arguments))
        return replace(self.call, name=name, target=target, arguments=given, results=(value,))


_Rewrite = Callable[[_Step], None]


def _refs(argument: Argument) -> tuple[Ref, ...]:
    if isinstance(argument, Ref):
        return (argument,)
    return tuple(ref for one in argument for ref in _refs(one)) if isinstance(argument, tuple) else ()


def _with_pairs(call: Call) -> Call:
    values = tuple(value and replace(value, type=_paired(value.type)) for value in call.results)
    return replace(call, results=values)


def _same(step: _Step) -> None:
    """What does the same to both parts."""
    arguments = {name: _as_real(value) for name, value in step.call.arguments.items()}
    step.made.append(replace(_with_pairs(step.call), arguments=MappingProxyType(arguments)))


def _as_real(value: Argument) -> Argument:
    if isinstance(value, complex):
        raise _NoPair
    if isinstance(value, DTypeName):
        if value.dtype not in _REAL:
            raise _NoPair
        return DTypeName(_REAL[value.dtype])
    return value


def _among_others(*names: str, more: int = 0, last: Mapping[str, int] = MappingProxyType({})) -> _Rewrite:
    """What names dimensions: those from the end are counted without the pair's. ``last``: defaults."""

    def rewrite(step: _Step) -> None:
        refs = [ref for value in step.call.arguments.values() for ref in _refs(value)]
        if not refs or not step.is_complex(refs[0]):
            raise _NoPair
        rank = len(step.shape(refs[0])) + more
        arguments = {**last, **step.call.arguments}
        for name in names:
            value = arguments.get(name)
            if isinstance(value, int):
                arguments[name] = value + rank if value < 0 else value
            elif value is not None:
                raise _NoPair
        step.made.append(replace(_with_pairs(step.call), arguments=MappingProxyType(arguments)))

    return rewrite


def _lengthened(name: str, entry: int | None = None) -> _Rewrite:
    """What takes a list with an entry for every dimension: one more, by default the pair's own dimension."""

    def rewrite(step: _Step) -> None:
        listed = step.call.arguments.get(name)
        rank = len(step.shape(step.tensor("self")))
        if not isinstance(listed, tuple) or not all(isinstance(size, int) for size in listed):
            raise _NoPair
        whole = [size for size in listed if isinstance(size, int)]
        if entry is None:
            whole = [size + rank if size < 0 else size for size in whole]
        arguments = {**step.call.arguments, name: (*whole, rank if entry is None else entry)}
        step.made.append(replace(_with_pairs(step.call), arguments=MappingProxyType(arguments)))

    return rewrite


def _alias(step: _Step) -> None:
    step.give("aten.alias.default", {"self": step.tensor("self")})


def _polar(step: _Step) -> None:
    length, angle = step.tensor("abs"), step.tensor("angle")
    shape, turned = step.result.type.shape, step.shape(angle)
    parts: list[Argument] = []
    for op in ("cos", "sin"):
        part = step.add(f"aten.{op}.default", turned, {"self": angle})
        parts.append(step.add("aten.mul.Tensor", shape, {"self": length, "other": part}))
    _together(step, *parts)


def _together(step: _Step, *parts: Argument) -> None:
    step.give("aten.stack.default", {"tensors": parts, "dim": len(step.result.type.shape)})


def _complex(step: _Step) -> None:
    parts = step.tensor("real"), step.tensor("imag")
    if step.shape(parts[0]) != step.shape(parts[1]):
        raise _NoPair
    _together(step, *parts)


def _one_part(place: int) -> _Rewrite:
    def rewrite(step: _Step) -> None:
        x = step.tensor("self")
        step.give("aten.select.int", {"self": x, "dim": len(step.shape(x)), "index": place})

    return rewrite


def _conjugate(step: _Step) -> None:
    x = step.tensor("self")
    opposite = step.add("aten.neg.default", step.shape(x), {"self": step.part(x, 1)})
    _together(step, step.part(x, 0), opposite)


def _times(step: _Step) -> None:
    one, other = step.tensor("self"), step.call.arguments.get("other")
    if not isinstance(other, Ref):
        _same(step)
        return
    if not step.is_complex(one) or not step.is_complex(other):
        pair, number = (one, other) if step.is_complex(one) else (other, one)
        size = step.shape(number)
        wide = step.add("aten.unsqueeze.default", (*size, 1), {"self": number, "dim": len(size)})
        step.give("aten.mul.Tensor", {"self": pair, "other": wide})
        return
    real, imag = step.part(one, 0), step.part(one, 1)
    real_, imag_ = step.part(other, 0), step.part(other, 1)
    _together(
        step,
        _of_two(step, "sub", _of_two(step, "mul", real, real_), _of_two(step, "mul", imag, imag_)),
        _of_two(step, "add", _of_two(step, "mul", real, imag_), _of_two(step, "mul", imag, real_)),
    )


def _of_two(step: _Step, op: str, one: Ref, other: Ref) -> Ref:
    return step.add(f"aten.{op}.Tensor", step.result.type.shape, {"self": one, "other": other})


def _sum_of_two(step: _Step) -> None:
    other = step.call.arguments.get("other")
    if not isinstance(other, Ref) or not step.is_complex(step.tensor("self")) or not step.is_complex(other):
        raise _NoPair
    _same(step)


_REWRITES: Mapping[str, _Rewrite] = {
    **dict.fromkeys(("view_as_complex", "view_as_real", "resolve_conj"), _alias),
    **dict.fromkeys(
        ("clone", "contiguous", "detach", "alias", "lift_fresh", "lift_fresh_copy", "to", "index"), _same
    ),
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _lengthened("size", 2)),
    **dict.fromkeys(("expand",), _lengthened("size", 2)),
    **dict.fromkeys(("permute",), _lengthened("dims")),
    "repeat": _lengthened("repeats", 1),
    **dict.fromkeys(
        ("slice", "select", "split", "split_with_sizes", "unbind", "chunk", "narrow", "index_select", "cat"),
        _among_others("dim"),
    ),
    **dict.fromkeys(("unsqueeze", "stack"), _among_others("dim", more=1)),
    "transpose": _among_others("dim0", "dim1"),
    "flatten": _among_others("start_dim", "end_dim", last={"end_dim": -1}),
    "polar": _polar,
    "complex": _complex,
    "real": _one_part(0),
    "imag": _one_part(1),
    **dict.fromkeys(("conj", "_conj", "conj_physical"), _conjugate),
    "mul": _times,
    **dict.fromkeys(("add", "sub"), _sum_of_two),
}
