"""An ONNX model as plain records, checked as far as one can without knowing what an operator means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from numpy.typing import NDArray

from scalify.errors import InvalidGraph
from scalify.ir.graph import DType, TensorType

# By the number that the format has for an element type.
ELEMENT_TYPES: Mapping[int, DType] = MappingProxyType({
    1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64",
    12: "u32", 13: "u64", 14: "c64", 15: "c128", 16: "bf16", 17: "f8e4m3", 19: "f8e5m2",
})  # fmt: skip

MAX_NODES = 500_000
MAX_NAME = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor in the file, as little-endian ``raw`` bytes; None where its values lie in another file."""

    name: str
    type: TensorType
    raw: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An attribute of a function's node that stands for one of the function's own."""

    name: str


Value: TypeAlias = (
    "int | float | str | Tensor | Parameter | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxNode:
    """One operator applied. An input or output that is left out has the empty name."""

    name: str
    domain: str
    op: str
    overload: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Value]
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def target(self) -> str:
        """What the operator is called, its domain and overload included."""
        domain = f"{self.domain}." if self.domain else ""
        return f"onnx.{domain}{self.op}" + (f".{self.overload}" if self.overload else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """An operator that the model itself defines by others."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: frozenset[str]
    defaults: Mapping[str, Value]
    nodes: tuple[OnnxNode, ...]
    opsets: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A whole model. ``types`` are those that it states for values, where all sizes are numbers.

    ``origin`` tells it from any other: two draws of random numbers are equal only within one.
    """

    name: str
    origin: str
    opsets: Mapping[str, int]
    nodes: tuple[OnnxNode, ...]
    initializers: tuple[Tensor, ...]
    inputs: tuple[tuple[str, TensorType], ...]
    outputs: tuple[str, ...]
    types: Mapping[str, TensorType]
    functions: Mapping[tuple[str, str, str], Function]
    metadata: Mapping[str, str]


Array = NDArray[Any]


def damaged(what: str) -> InvalidGraph:
    """The model breaks its format."""
    return InvalidGraph(f"damaged model: {what}", hint="export it again")
