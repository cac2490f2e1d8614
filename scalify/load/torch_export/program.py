"""A PyTorch graph as plain records: what an export archive's JSON and a live FX graph both become.

A ``Program`` is a list of operator calls with named arguments. It knows nothing of what the operators
mean; ``translate`` gives them a meaning. Dynamic shapes do not occur: readers refuse them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NewType, TypeAlias

from scalify.ir.graph import DType, Site, TensorType
from scalify.ir.mesh import SINGLE, Groups, Mesh

ValueName = NewType("ValueName", str)


@dataclass(frozen=True, slots=True)
class Ref:
    """An argument that is a value of the graph."""

    name: ValueName


@dataclass(frozen=True, slots=True)
class DTypeName:
    """An argument that is a data type."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class Foreign:
    """An argument that has no bearing on the value (a device, a layout) or none that we know of."""

    text: str
    matters: bool = False


Argument: TypeAlias = (
    "bool | int | float | complex | str | Ref | DTypeName | Foreign | Body | tuple[Argument, ...] | None"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A result of a call. ``contiguous``: laid out row-major, so that a reshape of it is a view."""

    name: ValueName
    type: TensorType
    contiguous: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One operator applied. ``results`` holds None where a result is no tensor or is not described."""

    name: str
    target: str
    arguments: Mapping[str, "Argument"]
    results: tuple[Value | None, ...]
    stack: tuple[Site, ...] = ()
    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A graph inside a call: what a ``no_grad`` or ``autocast`` block does."""

    inputs: tuple[ValueName, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Ref | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What a program takes. ``label`` is its name in the user's model.

    ``data`` holds the values of a constant that the program closes over, where they are known and few;
    ``digest`` stands for many.
    """

    name: ValueName
    label: str
    role: Literal["input", "parameter", "buffer"]
    type: TensorType
    contiguous: bool = True
    data: tuple[int | float | bool, ...] | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a program gives. ``updates`` is the label of a parameter whose contents it replaces.

    ``label`` is what it is called, where it has a name.
    """

    value: "Argument"
    updates: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What one rank runs. ``groups``: for each process group that it names, how it cuts up the mesh.

    ``origin`` tells this program from any other: two draws of random numbers are equal only within one.
    ``pure`` are operators of other libraries that are known to write to nothing that they are given.
    ``notes`` say in words what is to be known of how it was read.
    """

    name: str
    origin: str
    parameters: tuple[Parameter, ...]
    calls: tuple[Call, ...]
    results: tuple[Result, ...]
    mesh: Mesh = SINGLE
    pure: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    groups: Mapping[str, Groups] = field(default_factory=lambda: MappingProxyType({}))
