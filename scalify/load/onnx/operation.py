"""A node as its translation sees it: checked access to inputs and attributes, and the emitter.

Attributes that a node leaves out have the default of ONNX's schema, which the translation states.
``Unmodelled`` means that the node is sound but has no meaning here: it becomes an opaque node.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from scalify.errors import InvalidGraph
from scalify.ir.graph import TensorType
from scalify.load.onnx.folding import Folding
from scalify.load.onnx.model import Array, OnnxNode, Tensor, Value, damaged
from scalify.load.torch_export.emit import Wire


class Unmodelled(Exception):
    """This use of an operator has no meaning in the IR."""


MOST_OUTPUTS = 65_536
WITHOUT_BEARING = frozenset(
    {
        "stash_type", "softmax_precision", "saturate", "round_mode",  # how it is rounded
        "seed", "momentum",  # while training
        "noop_with_empty_axes",  # where dimensions are given
        "nearest_mode", "cubic_coeff_a", "extrapolation_value",  # of other modes than the one stated
        "qk_matmul_output_mode",  # of a result that is refused
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One node under translation. ``opset`` is the version of its domain; ``types`` those stated for results.

    What is noted is printed with a verdict, once.
    """

    node: OnnxNode
    opset: int
    inputs: tuple[Wire | None, ...]
    attributes: Mapping[str, Value]
    emit: Folding
    notes: dict[str, None]
    types: tuple[TensorType | None, ...] = field(default=())
    read: set[str] = field(default_factory=set[str])

    def has(self, place: int) -> bool:
        """Whether an input is given."""
        return place < len(self.inputs) and self.inputs[place] is not None

    def maybe(self, place: int) -> Wire | None:
        """An input that may be left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def tensor(self, place: int = 0) -> Wire:
        """An input that has to be there."""
        wire = self.maybe(place)
        if wire is None:
            raise damaged(f"{self.what} has no input {place}")
        return wire

    def tensors(self) -> tuple[Wire, ...]:
        """All inputs, at least one."""
        self.tensor(0)
        return tuple(self.tensor(place) for place in range(len(self.inputs)))

    @property
    def what(self) -> str:
        """How an error calls the node."""
        return f"{self.node.op} {self.node.name or self.node.outputs[0]}"

    def result_of(self, count: int) -> bool:
        """Whether a result after the first ``count`` is asked for."""
        return any(self.node.outputs[count:])

    def known(self, place: int) -> Array:
        """The value of an input that has to follow from constants."""
        value = self.emit.known(self.tensor(place))
        if value is None:
            raise Unmodelled(f"input {place} is data")
        return value

    def known_integers(self, place: int) -> tuple[int, ...]:
        """An input that is a list of integers, known at load."""
        wire, value = self.tensor(place), self.known(place)
        if len(wire.shape) > 1 or wire.dtype not in ("i64", "i32"):
            raise damaged(f"input {place} of {self.what} is no list of integers")
        return tuple(int(number) for number in value.reshape(-1))

    def scalar(self, place: int) -> Wire:
        """An input of one element, as a scalar."""
        wire = self.tensor(place)
        if any(size != 1 for size in wire.shape):
            raise damaged(f"input {place} of {self.what} is no scalar")
        return self.emit.reshape(wire, ())

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        value = self.attribute(name, default)
        if not isinstance(value, int):
            raise self._wrong(name, "an integer")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A float attribute."""
        value = self.attribute(name, default)
        if not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        return float(value)

    def text(self, name: str, default: str) -> str:
        """A text attribute."""
        value = self.attribute(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        value = self.attribute(name, None if default is None else tuple(default))
        if isinstance(value, tuple):
            found = tuple(entry for entry in value if isinstance(entry, int))
            if len(found) == len(value):
                return found
        raise self._wrong(name, "a list of integers")

    def stored(self, name: str) -> Tensor:
        """An attribute that is a tensor."""
        value = self.attribute(name)
        if not isinstance(value, Tensor):
            raise self._wrong(name, "a tensor")
        return value

    def given(self, name: str) -> bool:
        """Whether an attribute is stated."""
        return self.attribute(name) is not None

    def unread(self) -> tuple[str, ...]:
        """Attributes that the translation has not asked for, and that may count."""
        return tuple(
            name for name in self.attributes if name not in self.read and name not in WITHOUT_BEARING
        )

    def attribute(self, name: str, default: "Value | None" = None) -> "Value | None":
        """An attribute as it stands. It counts as read."""
        self.read.add(name)
        return self.attributes.get(name, default)

    def axis(self, number: int, rank: int) -> int:
        """A dimension counted from either end, as one counted from the front."""
        if not -rank <= number < max(rank, 1):
            raise damaged(f"{self.what} names dimension {number} of {rank}")
        return number % max(rank, 1)

    def axes(self, numbers: Sequence[int], rank: int) -> tuple[int, ...]:
        """Distinct dimensions."""
        found = tuple(self.axis(number, rank) for number in numbers)
        if len(set(found)) < len(found):
            raise damaged(f"{self.what} names a dimension twice: {list(numbers)}")
        return found

    def note(self, text: str) -> None:
        """Say what was taken for granted."""
        self.notes[text] = None

    def _wrong(self, name: str, wanted: str) -> InvalidGraph:
        return damaged(f"attribute {name} of {self.what} is not {wanted}")


Outcome = Wire | Sequence[Wire | None]
Meaning = Callable[[Operation], Outcome]
Meanings = Mapping[str, Meaning]
