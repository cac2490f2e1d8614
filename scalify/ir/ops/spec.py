"""What the table says about an op, and what an op is told about one of its nodes.

In: an op's name, the types of its operands, its attributes and the mesh. Out: a type, or ``InvalidGraph``
with the reason. Everything here is pure; nothing depends on a node's id or on the rest of the graph.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from numpy.typing import NDArray

from scalify.errors import InvalidGraph
from scalify.ir.graph import Attr, DType, TensorType
from scalify.ir.mesh import SINGLE, Groups, Mesh, RankInt
from scalify.ir.ops.attributes import AttrSpec, wrong_value

# The element type of an array is checked by the graph's own types, not by Python's.
Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One node as its op sees it. ``declared`` is the type the node claims, where it claims one.

    ``rank`` counts only where the node is evaluated: types are the same on every rank.
    """

    op: str
    operands: tuple[TensorType, ...] = ()
    attrs: Mapping[str, Attr] = field(default_factory=lambda: MappingProxyType({}))
    mesh: Mesh = SINGLE
    declared: TensorType | None = None
    rank: int = 0

    def integer(self, name: str) -> int:
        """An attribute of kind int. The readers trust the kind: ``type_of`` checked it."""
        return cast(int, self.attrs[name])

    def number(self, name: str) -> float:
        """An attribute of kind float; an int will do."""
        return float(cast(float, self.attrs[name]))

    def flag(self, name: str) -> bool:
        """An attribute of kind bool."""
        return cast(bool, self.attrs[name])

    def text(self, name: str) -> str:
        """An attribute of kind str."""
        return cast(str, self.attrs[name])

    def integers(self, name: str) -> tuple[int, ...]:
        """An attribute that is a tuple of ints."""
        return cast("tuple[int, ...]", self.attrs[name])

    def rank_integers(self, name: str) -> tuple[int | RankInt, ...]:
        """An attribute that is a tuple of integers which may differ between ranks."""
        return cast("tuple[int | RankInt, ...]", self.attrs[name])

    def pairs(self, name: str) -> tuple[tuple[int, int], ...]:
        """An attribute that is a tuple of pairs of ints."""
        return cast("tuple[tuple[int, int], ...]", self.attrs[name])

    def groups(self) -> Groups:
        """The replica groups of a collective."""
        return cast(Groups, self.attrs["groups"])

    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the operands."""
        return tuple(operand.dtype for operand in self.operands)

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """The shape of one operand."""
        return self.operands[index].shape

    def target(self) -> TensorType:
        """The declared type, of an op whose type does not follow from its operands."""
        if self.declared is None:
            raise mistake(f"{self.op} needs its type stated: it does not follow from the operands")
        return self.declared


Infer = Callable[[Call], TensorType]
Meaning = Callable[[Call, Sequence[Array]], Array]
Across = Callable[[Call, Sequence[Array]], list[Array]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSpec:
    """One op: what it needs, which type it has, what it means.

    ``arity`` is (least, most); most is None where there is no limit. An op that acts on one rank has a
    ``meaning``: operands to result. A collective has ``across``: its operand on every rank to its result
    on every rank. An op with neither cannot be run (``opaque``) or is a leaf that the evaluator fills.
    """

    name: str
    arity: tuple[int, int | None]
    attrs: Mapping[str, AttrSpec] = field(default_factory=lambda: MappingProxyType({}))
    infer: Infer
    meaning: Meaning | None = None
    across: Across | None = None

    def check_attrs(self, attrs: Mapping[str, Attr]) -> None:
        """Raise InvalidGraph unless exactly the attributes of this op are there, each of its kind."""
        for name, spec in self.attrs.items():
            if name not in attrs:
                if spec.optional:
                    continue
                raise mistake(f"{self.name} needs the attribute {name!r} ({spec.kind})")
            reason = wrong_value(spec, attrs[name])
            if reason:
                raise mistake(f"attribute {name!r} of {self.name} {reason}")
        if len(attrs) > len(self.attrs) or any(name not in self.attrs for name in attrs):
            strange = sorted(name for name in attrs if name not in self.attrs)
            known = ", ".join(self.attrs) or "none"
            raise mistake(f"{self.name} has no attribute {strange[0]!r}; it has: {known}")

    def check_arity(self, count: int) -> None:
        """Raise InvalidGraph unless the op takes ``count`` operands."""
        least, most = self.arity
        if count >= least and (most is None or count <= most):
            return
        wanted = (
            f"at least {least}" if most is None else f"{least}" if least == most else f"{least} to {most}"
        )
        raise mistake(f"{self.name} takes {wanted} operands, not {count}")


def mistake(message: str) -> InvalidGraph:
    """An ill-formed node. ``scalify.ir.check`` adds which node and where it comes from."""
    return InvalidGraph(
        message, hint="the program that wrote the graph is at fault: capture or export it again"
    )


def define(
    name: str,
    arity: int | tuple[int, int | None],
    infer: Infer,
    meaning: Meaning | None = None,
    across: Across | None = None,
    /,
    **attrs: AttrSpec,
) -> OpSpec:
    """A line of the table. An arity that is one number is exact."""
    exact = (arity, arity) if isinstance(arity, int) else arity
    return OpSpec(
        name=name, arity=exact, attrs=MappingProxyType(attrs), infer=infer, meaning=meaning, across=across
    )
