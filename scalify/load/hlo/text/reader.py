"""From HLO text to a ``Module``: a header, then computations, each a list of instructions.

Names become numbers: an instruction's is its place in the file, a computation's the order of first mention.
Operands must be named before they are used, as XLA requires; computations may be called before they are
printed.
"""

from types import MappingProxyType
from typing import Any

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.load.hlo.program import (
    MAX_INSTRUCTIONS,
    Alias,
    Computation,
    Frame,
    Instruction,
    Module,
)
from scalify.load.hlo.text.attributes import Attributes
from scalify.load.hlo.text.tokens import Cursor
from scalify.load.hlo.text.values import integers, literal, shape

_TABLES = frozenset({"FileNames", "FunctionNames", "FileLocations", "StackFrames"})
# The rest of the header is about layouts, scheduling and compilation.
_HEADER_SKIPPED = frozenset(
    {
        "is_scheduled", "entry_computation_layout", "buffer_donor", "alias_passthrough_params",
        "allow_spmd_sharding_propagation_to_parameters", "allow_spmd_sharding_propagation_to_output",
        "frontend_attributes", "device_type", "input_output_alias_type", "cross_program_prefetches",
        "origin_recovery_table",
    }
)  # fmt: skip


def read_module_text(text: str) -> Module:
    """The module that ``text`` prints."""
    return _Reader(Cursor(text)).module()


class _Reader:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._numbers: dict[str, int] = {}
        self._computations: dict[int, Computation] = {}
        self._count = 0
        self._entry: int | None = None
        self._aliases: tuple[Alias, ...] = ()
        self._sizes: dict[str, int] = {}

    def module(self) -> Module:
        cursor = self._cursor
        cursor.expect("HloModule")
        name = cursor.name("the module's name")
        self._header()
        frames = self._tables()
        while cursor.text:
            self._computation()
        entry = self._entry
        if entry is None:
            if len(self._computations) != 1:
                raise InvalidGraph("no computation is marked ENTRY", hint="write the whole module again")
            (entry,) = self._computations
        return Module(
            name=name,
            entry=entry,
            computations=MappingProxyType(self._computations),
            aliases=self._aliases,
            frames=MappingProxyType(frames),
            replicas=self._sizes.get("replica_count"),
            partitions=self._sizes.get("num_partitions"),
        )

    def _header(self) -> None:
        cursor = self._cursor
        while cursor.take(","):
            key = cursor.word("an attribute of the module")
            cursor.expect("=")
            if key in {"replica_count", "num_partitions"}:
                self._sizes[key] = cursor.integer()
            elif key == "input_output_alias":
                self._aliases = self._alias_table()
            elif key in _HEADER_SKIPPED:
                cursor.raw()
            else:
                raise UnsupportedFormat(
                    f"the module has the attribute {key[:60]!r}, which this release does not know",
                    hint="upgrade scalify or use an older compiler",
                )

    def _alias_table(self) -> tuple[Alias, ...]:
        """``{ {1}: (6, {}, must-alias), {2}: (7, {}) }``."""
        cursor = self._cursor
        cursor.expect("{")
        found: list[Alias] = []
        while not cursor.take("}"):
            output = integers(cursor)
            cursor.expect(":")
            cursor.expect("(")
            parameter = cursor.integer()
            path = integers(cursor) if cursor.take(",") else ()
            if cursor.take(","):
                cursor.word("a kind of alias")
            cursor.expect(")")
            cursor.take(",")
            found.append(Alias(output, parameter, path))
        return tuple(found)

    def _tables(self) -> dict[int, Frame]:
        """Tables of files, functions, locations and frames, which some compilers print after the header."""
        cursor = self._cursor
        tables: dict[str, dict[int, Any]] = {}
        while cursor.text in _TABLES:
            table = tables.setdefault(cursor.advance(), {})
            while cursor.kind == "word" and cursor.text.isdecimal():
                number = cursor.integer()
                table[number] = cursor.string() if cursor.at_string else self._fields()
        frames: dict[int, Frame] = {}
        for number, frame in tables.get("StackFrames", {}).items():
            location = tables.get("FileLocations", {}).get(frame.get("file_location_id", 0))
            if location is None:
                continue
            parent = frame.get("parent_frame_id", 0)
            frames[number] = Frame(
                tables.get("FileNames", {}).get(location.get("file_name_id", 0), ""),
                tables.get("FunctionNames", {}).get(location.get("function_name_id", 0), ""),
                location.get("line", 0),
                parent if parent != number else 0,
            )
        return frames

    def _fields(self) -> dict[str, int]:
        cursor = self._cursor
        fields: dict[str, int] = {}
        cursor.expect("{")
        while not cursor.take("}"):
            key = cursor.word("a key")
            cursor.expect("=")
            fields[key] = cursor.integer()
            cursor.take(",")
        return fields

    def _number(self, computation: str) -> int:
        return self._numbers.setdefault(computation, len(self._numbers))

    def _computation(self) -> None:
        cursor = self._cursor
        is_entry = cursor.take("ENTRY")
        name = cursor.name("a computation")
        number = self._number(name)
        if number in self._computations or (is_entry and self._entry is not None):
            raise cursor.wrong(f"computation {name[:60]!r} is printed twice, or two are marked ENTRY")
        if cursor.text == "(":
            cursor.raw()
            cursor.expect("->")
            shape(cursor, name)
        cursor.expect("{")
        instructions, root = self._instructions()
        while cursor.take(","):
            cursor.word("an attribute")
            cursor.expect("=")
            cursor.raw()
        self._computations[number] = Computation(name, number, root, instructions)
        if is_entry:
            self._entry = number

    def _instructions(self) -> tuple[tuple[Instruction, ...], int]:
        cursor = self._cursor
        named: dict[str, int] = {}
        instructions: list[Instruction] = []
        root: int | None = None
        while not cursor.take("}"):
            is_root = cursor.take("ROOT")
            instruction = self._instruction(named)
            instructions.append(instruction)
            named[instruction.name] = instruction.id
            if is_root:
                root = instruction.id
        if not instructions:
            raise cursor.wrong("a computation has at least one instruction")
        return tuple(instructions), instructions[-1].id if root is None else root

    def _instruction(self, named: dict[str, int]) -> Instruction:
        cursor = self._cursor
        self._count += 1
        if self._count > MAX_INSTRUCTIONS:
            raise InvalidGraph("the module has too many instructions", hint="up to 2,000,000 are read")
        name = cursor.name("an instruction")
        if name in named:
            raise cursor.wrong(f"there is an instruction {name[:60]!r} already")
        cursor.expect("=")
        type = shape(cursor, name)
        opcode = cursor.name("an opcode")
        cursor.expect("(")
        values: dict[str, Any] = {"name": name, "opcode": opcode, "id": self._count, "shape": type}
        if opcode == "parameter":
            values["parameter_number"] = cursor.integer()
            cursor.expect(")")
        elif opcode == "constant":
            values["literal"] = literal(cursor, type, name)
        else:
            values["operands"] = self._operands(named)
        attributes = Attributes(opcode)
        attributes.read(cursor, f"{opcode} {name}")
        values["called"] = tuple(map(self._number, attributes.called))
        return Instruction(**values, **attributes.values)

    def _operands(self, named: dict[str, int]) -> tuple[int, ...]:
        """``f32[2]{0} %x, %y``: each with or without its shape."""
        cursor = self._cursor
        operands: list[int] = []
        while not cursor.take(")"):
            name = self._operand()
            if name not in named:
                raise cursor.wrong(
                    f"operand {name[:60]!r} is not printed before it is used (a cycle, or absent)"
                )
            operands.append(named[name])
            if cursor.text != ")":
                cursor.expect(",")
        return tuple(operands)

    def _operand(self) -> str:
        cursor = self._cursor
        if cursor.text == "(":
            shape(cursor, "an operand")
            return cursor.name("an operand")
        word = cursor.word("an operand")
        if cursor.text != "[":
            return word.removeprefix("%")
        self._rest_of_shape()
        return cursor.name("an operand")

    def _rest_of_shape(self) -> None:
        """The dimensions and layout of an operand, which repeat those of the instruction it names."""
        cursor = self._cursor
        cursor.raw()
