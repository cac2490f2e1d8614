"""A module in the making, as JAX's front ends write it: instructions of HLO, with loops already unrolled.

In: one operation after another, from StableHLO or from a jaxpr. Out: the records that ``load.hlo`` reads
into, so that one translation gives them their meaning. Scalars that follow from constants are known while
the module is written: by them loops end. Opcodes that HLO has not are in ``meaning``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypedDict, Unpack

import numpy as np

from scalify.errors import InvalidGraph
from scalify.load.hlo.literals import STORAGE, stored_bytes
from scalify.load.hlo.program import (
    Alias,
    Computation,
    ConvDims,
    DotDims,
    Frame,
    GatherDims,
    Instruction,
    Literal,
    Metadata,
    Module,
    Shape,
    WindowDim,
)
from scalify.load.stablehlo.known import INTEGERS, folded, is_whole

MAX_INSTRUCTIONS = 500_000
Axes = tuple[tuple[str, int], ...]
Place = tuple[tuple[str, int, str], ...]
"""File, line and function of each frame, outermost first."""


class Fields(TypedDict, total=False):
    """What else an instruction says, by the names of ``Instruction``."""

    called: tuple[int, ...]
    literal: Literal
    parameter_number: int
    tuple_index: int
    dimensions: tuple[int, ...]
    slices: tuple[tuple[int, int, int], ...]
    sizes: tuple[int, ...]
    padding: tuple[tuple[int, int, int], ...]
    dot: DotDims
    gather: GatherDims
    conv: ConvDims
    window: tuple[WindowDim, ...]
    feature_groups: int
    batch_groups: int
    direction: str
    target: str
    backend_config: bytes
    side_effect: bool
    groups: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[int, int], ...]
    channel: int
    global_ids: bool
    exponent_bits: int
    mantissa_bits: int
    stable: bool
    k: int
    largest: bool
    extras: tuple[tuple[str, str], ...]


_COMPLEX = frozenset({"c64", "c128"})


class Listing:
    """The entry computation so far, and the computations that its instructions are told by."""

    def __init__(self, name: str, axes: Axes = ()) -> None:
        self.name = name
        self.axes = axes
        self._instructions: list[Instruction] = []
        self._by_id: dict[int, Instruction] = {}
        self._shapes: dict[int, Shape] = {}
        self._known: dict[int, int] = {}
        self._computations: dict[int, Computation] = {}
        self._combiners: dict[tuple[str, str], int] = {}
        self._frames: dict[tuple[str, int, str, int], int] = {}
        self._table: dict[int, Frame] = {}
        self._count = 0

    def add(
        self,
        opcode: str,
        operands: Sequence[int],
        shape: Shape,
        metadata: Metadata | None = None,
        *,
        name: str = "",
        **fields: Unpack[Fields],
    ) -> int:
        """List one instruction; its id. One that makes a scalar that is known becomes a constant."""
        value = self._folded(opcode, operands, shape, fields)
        if value is not None and opcode != "constant":
            return self.constant(value, shape, metadata)
        self._count += 1
        if len(self._instructions) >= MAX_INSTRUCTIONS:
            raise InvalidGraph(
                f"the program has more than {MAX_INSTRUCTIONS} operations once its loops are unrolled",
                hint="verify a part of the model, or fewer layers",
            )
        instruction = Instruction(
            name=name or f"{opcode}.{self._count}",
            opcode=opcode,
            id=self._count,
            shape=shape,
            operands=tuple(operands),
            metadata=metadata,
            **fields,
        )
        self._instructions.append(instruction)
        self._by_id[instruction.id] = instruction
        self._shapes[instruction.id] = shape
        return instruction.id

    def constant(self, value: float, shape: Shape, metadata: Metadata | None = None) -> int:
        """List a constant whose elements are all one real number."""
        numbers = [repr(value), "0"] if shape.element in _COMPLEX else [repr(value)]
        if shape.element == "pred":
            numbers = ["1" if value else "0"]
        return self.literal(stored_bytes(numbers, shape.element), shape, metadata)

    def literal(self, data: bytes, shape: Shape, metadata: Metadata | None = None) -> int:
        """List a constant. ``data`` are the bytes of all its elements in HLO's storage, or of one for all."""
        if shape.dims and len(data) == np.dtype(STORAGE[shape.element]).itemsize:
            one = self.literal(data, Shape(shape.element), metadata)
            return self.add("broadcast", (one,), shape, metadata, dimensions=())
        number = self.add("constant", (), shape, metadata, literal=Literal(shape, data))
        if not shape.dims and is_whole(shape):
            self._known[number] = int(np.frombuffer(data, STORAGE[shape.element])[0])
        return number

    def tuple_of(self, values: Sequence[int]) -> int:
        """List a tuple."""
        shape = Shape("tuple", parts=tuple(self.shape(value) for value in values))
        return self.add("tuple", values, shape)

    def parts(self, whole: int, metadata: Metadata | None) -> list[int]:
        """List the parts of a tuple."""
        return [
            self.add("get-tuple-element", (whole,), part, metadata, tuple_index=index)
            for index, part in enumerate(self.shape(whole).parts)
        ]

    def shape(self, value: int) -> Shape:
        """The shape of what was listed."""
        return self._shapes[value]

    def known(self, value: int) -> int | None:
        """The whole number or truth that a scalar is, if that follows from constants."""
        return self._known.get(value)

    def opcode(self, value: int) -> tuple[str, tuple[int, ...]]:
        """What a value was listed as, with its dimensions."""
        instruction = self._by_id[value]
        return instruction.opcode, instruction.dimensions

    def inputs(self, value: int) -> tuple[int, ...]:
        """What a value was listed to be computed from."""
        return self._by_id[value].operands

    def is_bound(self, value: int, *, lowest: bool) -> bool:
        """Whether a value is a constant below (or above) which its type has no number."""
        literal = self._by_id[value].literal
        if literal is None or literal.shape.dims:
            return False
        element = literal.shape.element
        if element in INTEGERS:
            limits = np.iinfo(STORAGE[element])
            return self._known.get(value) == (limits.min if lowest else limits.max)
        return literal.data == stored_bytes(["-inf" if lowest else "inf"], element)

    def mark(self) -> int:
        """Where the listing stands, for ``forget``."""
        return len(self._instructions)

    def forget(self, mark: int) -> None:
        """Strike what was listed since ``mark``: it had only to be known."""
        for instruction in self._instructions[mark:]:
            del self._shapes[instruction.id]
            del self._by_id[instruction.id]
            self._known.pop(instruction.id, None)
        del self._instructions[mark:]

    def combiner(self, opcode: str, element: str) -> int:
        """The computation that combines two scalars by ``opcode``; ``second`` takes the second."""
        key = (opcode, element)
        if key not in self._combiners:
            self._combiners[key] = self._define(opcode, Shape(element))
        return self._combiners[key]

    def comparator(self, direction: str, elements: Sequence[str]) -> int:
        """The computation that compares the first two of two scalars for every one of ``elements``."""
        shapes = [Shape(element) for element in elements for _ in range(2)]
        return self._computation(shapes, "compare", Shape("pred"), direction)

    def _define(self, opcode: str, scalar: Shape) -> int:
        return self._computation((scalar, scalar), opcode, scalar, "")

    def _computation(self, parameters: Sequence[Shape], opcode: str, result: Shape, direction: str) -> int:
        first = self._count + 1
        instructions = [
            Instruction(f"p{place}", "parameter", first + place, shape, parameter_number=place)
            for place, shape in enumerate(parameters)
        ]
        root = first + 1
        self._count += len(parameters) + 2
        if opcode != "second":
            root = first + len(parameters)
            instructions.append(
                Instruction(opcode, opcode, root, result, (first, first + 1), direction=direction)
            )
        number = self._count
        self._computations[number] = Computation(opcode, number, root, tuple(instructions))
        return number

    def placed(self, place: Place, scope: str) -> Metadata:
        """Metadata that says where an operation comes from."""
        parent = 0
        for file, line, function in place:
            key = (file, line, function, parent)
            if key not in self._frames:
                self._frames[key] = len(self._frames) + 1
                self._table[self._frames[key]] = Frame(file, function, line, parent)
            parent = self._frames[key]
        return Metadata(op_name=scope, stack_frame=parent)

    def module(self, results: Sequence[int], aliases: tuple[Alias, ...] = ()) -> Module:
        """All that was listed, with its results."""
        root = self.tuple_of(results)
        self._count += 1
        entry = Computation(self.name, self._count, root, tuple(self._instructions))
        return Module(
            name=self.name,
            entry=entry.id,
            computations=MappingProxyType({**self._computations, entry.id: entry}),
            aliases=aliases,
            frames=MappingProxyType(self._table),
            axes=self.axes,
        )

    def _folded(self, opcode: str, operands: Sequence[int], shape: Shape, fields: Fields) -> int | None:
        name = fields.get("direction", "") if opcode == "compare" else opcode
        of_truths = all(self._shapes[operand].element == "pred" for operand in operands)
        return folded(name, [self._known.get(operand) for operand in operands], of_truths, shape)


@dataclass(slots=True, kw_only=True)
class Listed:
    """One operation being listed: the ids that its inputs became, and the types of its results."""

    listing: Listing
    operands: tuple[int, ...]
    shapes: tuple[Shape, ...]
    metadata: Metadata

    @property
    def shape(self) -> Shape:
        """The type of the only result."""
        return self.shapes[0]

    def shape_at(self, place: int) -> Shape:
        """The type of an operand."""
        return self.listing.shape(self.operands[place])

    def add(
        self, opcode: str, operands: Sequence[int], shape: Shape | None = None, **fields: Unpack[Fields]
    ) -> int:
        """List an instruction of this operation. Without a ``shape`` it has the result's."""
        return self.listing.add(opcode, operands, shape or self.shape, self.metadata, **fields)

    def constant(self, value: float, shape: Shape) -> int:
        """List a constant that the operation implies."""
        return self.listing.constant(value, shape, self.metadata)

    def reshaped(self, value: int, dims: Sequence[int]) -> int:
        """List a reshape; nothing where the shape is the value's own."""
        shape = self.listing.shape(value)
        if shape.dims == tuple(dims):
            return value
        return self.add("reshape", (value,), Shape(shape.element, tuple(dims)))

    def transposed(self, value: int, perm: Sequence[int]) -> int:
        """List a transposition; nothing where the order is the value's own."""
        shape = self.listing.shape(value)
        if tuple(perm) == tuple(range(len(shape.dims))):
            return value
        turned = Shape(shape.element, tuple(shape.dims[dim] for dim in perm))
        return self.add("transpose", (value,), turned, dimensions=tuple(perm))

    def chosen(self, which: int, branches: Sequence[Sequence[int]]) -> list[int]:
        """List the choice among the results of branches; a number outside chooses the nearest."""
        results = list(branches[-1])
        for place in reversed(range(len(branches) - 1)):
            number = self.constant(place, self.listing.shape(which))
            here = self.add("compare", (which, number), Shape("pred"), direction="LE")
            results = [
                self.add("select", (here, one, other), shape)
                for one, other, shape in zip(branches[place], results, self.shapes, strict=True)
            ]
        return results

    def cut(self, opcode: str, value: int, pairs: tuple[tuple[int, int], ...], shape: Shape) -> int:
        """List ``shard`` or ``unshard``: ``pairs`` are dimensions with the places of axes in the mesh."""
        return self.add(opcode, (value,), shape, pairs=pairs) if pairs else value
