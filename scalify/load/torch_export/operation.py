"""A call as its translation sees it: checked access to arguments, and the emitter.

Arguments that a call leaves out have the default of PyTorch's schema, which the translation states.
``Unmodelled`` means that the call is sound but has no meaning here: it becomes an opaque node.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scalify.errors import InvalidGraph
from scalify.ir.graph import DType, TensorType
from scalify.load.torch_export.emit import Emitter, Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.program import Call, DTypeName, Foreign, Program, Ref


class Unmodelled(Exception):
    """This use of an operator has no meaning in the IR."""


Number = int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One call under translation."""

    call: Call
    overload: str
    emit: Emitter
    program: Program
    read: Callable[[Ref], Wire]

    @property
    def result(self) -> TensorType:
        """The type that the call's only, or first, result has."""
        for value in self.call.results:
            if value is not None:
                return value.type
        raise damaged(f"{self.call.name} has no typed result")

    def has(self, name: str) -> bool:
        """Whether the argument is given and is not None."""
        return self.call.arguments.get(name) is not None

    def is_tensor(self, name: str) -> bool:
        """Whether the argument is a value of the graph."""
        return isinstance(self.call.arguments.get(name), Ref)

    def tensor(self, name: str) -> Wire:
        """A tensor argument."""
        value = self.call.arguments.get(name)
        if not isinstance(value, Ref):
            raise self._wrong(name, "a tensor")
        return self.read(value)

    def maybe_tensor(self, name: str) -> Wire | None:
        """A tensor argument that may be left out."""
        return self.tensor(name) if self.has(name) else None

    def tensors(self, name: str) -> tuple[Wire, ...]:
        """An argument that is a list of tensors."""
        found = self.maybe_tensors(name)
        if any(wire is None for wire in found):
            raise self._wrong(name, "a list of tensors")
        return tuple(wire for wire in found if wire is not None)

    def maybe_tensors(self, name: str) -> tuple[Wire | None, ...]:
        """An argument that is a list of tensors and gaps."""
        value = self.call.arguments.get(name)
        if not isinstance(value, tuple):
            raise self._wrong(name, "a list of tensors")
        wires: list[Wire | None] = []
        for entry in value:
            if entry is not None and not isinstance(entry, Ref):
                raise self._wrong(name, "a list of tensors")
            wires.append(None if entry is None else self.read(entry))
        return tuple(wires)

    def number(self, name: str, default: Number | None = None) -> Number:
        """A scalar argument."""
        value = self.call.arguments.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer argument."""
        value = self.number(name, default)
        if isinstance(value, float):
            raise self._wrong(name, "an integer")
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        """A boolean argument."""
        return bool(self.number(name, default))

    def text(self, name: str, default: str) -> str:
        """A text argument."""
        value = self.call.arguments.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An argument that is a list of integers; one integer stands for a list of one."""
        value = self.call.arguments.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, int):
            return (int(value),)
        if not isinstance(value, tuple):
            raise self._wrong(name, "a list of integers")
        found = tuple(entry for entry in value if isinstance(entry, int))
        if len(found) != len(value):
            raise self._wrong(name, "a list of integers")
        return found

    def dtype(self, name: str) -> DType | None:
        """A data type argument, None where left out."""
        value = self.call.arguments.get(name)
        if isinstance(value, Foreign):
            raise Unmodelled(f"{name} is {value.text}")
        return value.dtype if isinstance(value, DTypeName) else None

    def axis(self, number: int, rank: int) -> int:
        """A dimension counted from either end, as one counted from the front."""
        span = max(rank, 1)
        if not -span <= number < span:
            raise damaged(f"{self.call.name} names dimension {number} of {rank}")
        return number % span

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """Dimensions from an argument; none given means all."""
        given = self.integers(name, ())
        return tuple(self.axis(number, rank) for number in given) if given else tuple(range(rank))

    def _wrong(self, name: str, wanted: str) -> InvalidGraph:
        return damaged(f"argument {name} of {self.call.name} ({self.call.target}) is not {wanted}")


Outcome = Wire | Sequence[Wire | None]
Meaning = Callable[[Operation], Outcome]
Meanings = Mapping[str, Meaning]
