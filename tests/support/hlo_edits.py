"""Edited copies of serialized HLO modules: one instruction changed, everything else as it was.

Built with the same descriptors that the reader uses. An edit names its instruction; ``edited`` returns the
bytes and ``write_edited`` puts them into a file::

    shifted = shifted_slice("slice.54", dim=1, by=64)
    write_edited(neuron_graph("tp2_layer1"), tmp_path / "wrong.hlo.pb", shifted)

The edits keep every shape, so that the result still type-checks.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalify.load.hlo.schema import message_class

Edit = Callable[[Any], None]

_GRAPHS = Path(__file__).parents[3] / "shared" / "data" / "neuron_hlo"


def neuron_graph(name: str) -> Path:
    """A graph of the production compiler stack, ``tp2_layer1``; the test is skipped where they are absent."""
    path = _GRAPHS / name / "graph.hlo.pb"
    if not path.is_file():
        pytest.skip(f"the HLO graphs of a production compiler are not beside the repository ({name})")
    return path


def parsed(path: Path) -> Any:
    """The module in a file, as a message of our schema that may be changed in place."""
    return message_class("Module").FromString(path.read_bytes())


def edited(path: Path, *edits: Edit) -> bytes:
    """The bytes of a module with the edits made to it, in order."""
    module = parsed(path)
    for edit in edits:
        edit(module)
    return module.SerializeToString()


def write_edited(path: Path, target: Path, *edits: Edit) -> Path:
    """Write an edited copy of ``path`` to ``target``."""
    target.write_bytes(edited(path, *edits))
    return target


def instruction(module: Any, name: str) -> Any:
    """The instruction of a name, in whichever computation."""
    for computation in module.computations:
        for candidate in computation.instructions:
            if candidate.name == name:
                return candidate
    raise LookupError(f"no instruction {name!r}")


def names(module: Any, opcode: str) -> list[str]:
    """The names of the entry computation's instructions of one opcode, in order."""
    (entry,) = (computation for computation in module.computations if computation.id == module.entry)
    return [candidate.name for candidate in entry.instructions if candidate.opcode == opcode]


def shifted_slice(name: str, *, dim: int, by: int) -> Edit:
    """The slice takes as many elements, ``by`` further on."""

    def edit(module: Any) -> None:
        bounds = instruction(module, name).slices[dim]
        bounds.start += by
        bounds.limit += by

    return edit


def other_reduction(name: str, opcode: str) -> Edit:
    """The computation that ``name`` calls (reduce, all-reduce) combines by another opcode: ``maximum``."""

    def edit(module: Any) -> None:
        (called,) = instruction(module, name).called
        (computation,) = (each for each in module.computations if each.id == called)
        (root,) = (each for each in computation.instructions if each.id == computation.root)
        root.opcode = opcode

    return edit


def other_groups(name: str, groups: tuple[tuple[int, ...], ...]) -> Edit:
    """The collective is among other ranks."""

    def edit(module: Any) -> None:
        target = instruction(module, name)
        del target.groups[:]
        for ids in groups:
            target.groups.add().ids.extend(ids)

    return edit


def other_dimensions(name: str, dimensions: tuple[int, ...]) -> Edit:
    """Another permutation of a transpose, or other axes of a reduce."""

    def edit(module: Any) -> None:
        target = instruction(module, name)
        del target.dimensions[:]
        target.dimensions.extend(dimensions)

    return edit


def other_constant(name: str, data: bytes) -> Edit:
    """Another value: little-endian bytes of as many elements of the same type."""

    def edit(module: Any) -> None:
        literal = instruction(module, name).literal
        fields = {field.name for field, _ in literal.ListFields()} - {"shape"}
        (field,) = fields or {"f32s"}
        if not isinstance(getattr(literal, field), bytes):
            raise TypeError(f"{name} holds its elements as {field}, not as bytes")
        setattr(literal, field, data)

    return edit


def swapped_operands(name: str) -> Edit:
    """The first two operands change places."""

    def edit(module: Any) -> None:
        operands = instruction(module, name).operands
        operands[0], operands[1] = operands[1], operands[0]

    return edit


def other_operand(name: str, position: int, source: str) -> Edit:
    """An operand is read from another instruction, which must come before ``name``."""

    def edit(module: Any) -> None:
        instruction(module, name).operands[position] = instruction(module, source).id

    return edit


def other_contraction(name: str, *, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> Edit:
    """A dot contracts other dimensions."""

    def edit(module: Any) -> None:
        dot = instruction(module, name).dot
        dot.lhs_contracting[:] = lhs
        dot.rhs_contracting[:] = rhs

    return edit


def without_all_reduce(name: str) -> Edit:
    """Users of the all-reduce read its operand instead: a partial sum used as if it were whole."""

    def edit(module: Any) -> None:
        forgotten = instruction(module, name)
        for computation in module.computations:
            for user in computation.instructions:
                user.operands[:] = [
                    forgotten.operands[0] if operand == forgotten.id else operand for operand in user.operands
                ]

    return edit


def swapped_aliases(module: Any) -> None:
    """The first two outputs that take over a buffer take each other's."""
    first, second = module.aliases.entries[:2]
    first.parameter, second.parameter = second.parameter, first.parameter
