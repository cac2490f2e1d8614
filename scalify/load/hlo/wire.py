"""Read a serialized HLO module: bytes in, a ``Module`` out, or one line that says what is wrong with the
file.

Accepts an HloModuleProto or an HloProto around one. Nothing in the file is trusted: messages are parsed by
protobuf against our own schema, fields unknown to it are refused (see ``schema``), and references are checked
by the translation, which is the same for both readers.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.load.hlo.groups import iota_groups
from scalify.load.hlo.literals import literal_bytes
from scalify.load.hlo.program import (
    MAX_INSTRUCTIONS,
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
    checked_name,
    shown,
)
from scalify.load.hlo.schema import message_class
from scalify.load.hlo.shapes import ELEMENT_NAMES, checked_dims

MAX_SIZE_BYTES = 2**31 - 1
_DAMAGED = "the file is damaged; write it again"


def read_module(data: bytes) -> Module:
    """The module in ``data``."""
    if len(data) > MAX_SIZE_BYTES:
        raise InvalidGraph(f"the file has {len(data)} bytes", hint="HLO files of up to 2 GiB are read")
    message = _parsed(data)
    count = sum(len(computation.instructions) for computation in message.computations)
    if count > MAX_INSTRUCTIONS:
        raise InvalidGraph(
            f"the module has {count} instructions", hint=f"at most {MAX_INSTRUCTIONS} are read"
        )
    shapes = _Shapes()
    computations: dict[int, Computation] = {}
    for computation in message.computations:
        if computation.id in computations:
            raise InvalidGraph(f"two computations have the id {computation.id}", hint=_DAMAGED)
        computations[computation.id] = _computation(computation, shapes)
    assignment = message.device_assignment if message.HasField("device_assignment") else None
    return Module(
        name=checked_name(message.name),
        entry=message.entry,
        computations=MappingProxyType(computations),
        aliases=tuple(
            Alias(tuple(entry.output), entry.parameter, tuple(entry.parameter_path))
            for entry in message.aliases.entries
        ),
        frames=MappingProxyType(_frames(message.frames)),
        replicas=assignment.replicas if assignment else None,
        partitions=assignment.partitions if assignment else None,
    )


def _parsed(data: bytes) -> Any:
    message = _module_message(data)
    if not message.computations:
        raise InvalidGraph("the HLO module has no computation", hint=_DAMAGED)
    # Dropping unknown fields of a whole module is cheap, searching for them is not: compare sizes first.
    message.DiscardUnknownFields()
    if message.ByteSize() != len(data):
        _refuse_unknown_fields(_module_message(data))
    return message


def _module_message(data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    try:
        message = message_class("Module").FromString(data)
        if message.entry_name or message.computations:
            return message
    except DecodeError:
        pass
    try:
        return message_class("Wrapped").FromString(data).module
    except DecodeError as error:
        raise InvalidGraph(f"not a whole HLO module: {error}", hint=_DAMAGED) from None


def _refuse_unknown_fields(message: Any) -> None:
    for path, number in _unknown_fields(message, "module"):
        raise UnsupportedFormat(
            f"{path} sets field {number} of the HLO format, which this release does not know",
            hint="its meaning could change the result; upgrade scalify or use an older compiler",
        )


def _unknown_fields(message: Any, path: str) -> Iterator[tuple[str, int]]:
    from google.protobuf.unknown_fields import UnknownFieldSet

    path = f"{path} {checked_name(message.name)}" if hasattr(message, "name") else path
    for unknown in UnknownFieldSet(message):
        yield path, unknown.field_number
    for field, value in message.ListFields():
        if field.message_type is None or field.name == "metadata":
            continue
        for part in value if field.is_repeated else (value,):
            yield from _unknown_fields(part, f"{path}, {field.name}")


def _frames(table: Any) -> dict[int, Frame]:
    files, functions, locations = tuple(table.files), tuple(table.functions), tuple(table.locations)
    frames: dict[int, Frame] = {}
    for index, frame in enumerate(table.frames, start=1):
        if not 1 <= frame.location <= len(locations):
            continue
        at = locations[frame.location - 1]
        frames[index] = Frame(
            files[at.file - 1] if 1 <= at.file <= len(files) else "",
            functions[at.function - 1] if 1 <= at.function <= len(functions) else "",
            at.line,
            frame.parent,
        )
    return frames


class _Shapes:
    """Shapes by their bytes: a module repeats few of them many times."""

    def __init__(self) -> None:
        self._known: dict[bytes, Shape] = {}

    def read(self, message: Any, where: str) -> Shape:
        key = message.SerializeToString()
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = _shape(message, where)
        return shape


def _shape(message: Any, where: str) -> Shape:
    element = ELEMENT_NAMES.get(message.element_type)
    if element is None:
        raise InvalidGraph(f"{where} has the unknown element type {message.element_type}", hint=_DAMAGED)
    if any(message.is_dynamic_dimension):
        raise UnsupportedFormat(
            f"{where} has a dimension whose size is known only at run time",
            hint="compile for fixed shapes (pad to the largest) and write the module again",
        )
    layout = message.layout if message.HasField("layout") else None
    return Shape(
        element,
        checked_dims(tuple(message.dimensions), where),
        tuple(_shape(part, where) for part in message.tuple_shapes),
        tuple(layout.minor_to_major) if layout is not None else None,
        layout is not None and _is_tiled(layout),
    )


def _is_tiled(layout: Any) -> bool:
    return any(field.name not in {"minor_to_major", "memory_space"} for field, _ in layout.ListFields())


def _computation(message: Any, shapes: _Shapes) -> Computation:
    instructions = tuple(_instruction(instruction, shapes) for instruction in message.instructions)
    return Computation(checked_name(message.name), message.id, message.root, instructions)


def _instruction(message: Any, shapes: _Shapes) -> Instruction:
    name, opcode = checked_name(message.name), checked_name(message.opcode)
    values: dict[str, Any] = {"name": name, "opcode": opcode, "id": message.id}
    values["shape"] = shapes.read(message.shape, name)
    extras: list[tuple[str, str]] = []
    known = readers()
    for field, value in message.ListFields():
        key = field.name
        if key in EXTRAS:
            extras.append((key, value.hex() if isinstance(value, bytes) else str(value)))
        elif key in known:
            target, reader = known[key]
            values[target] = reader(value)
    if message.HasField("literal"):
        values["literal"] = _literal(message.literal, shapes, name)
    if extras:
        values["extras"] = tuple(extras)
    return Instruction(**values)


def _literal(message: Any, shapes: _Shapes, where: str) -> Literal:
    shape = shapes.read(message.shape, where)
    return Literal(shape, literal_bytes(message, shape, where))


# Attributes that only tell opaque operations apart.
EXTRAS = frozenset(
    {
        "outfeed_config", "infeed_config", "outfeed_shape", "fft_type", "fft_length", "is_host_transfer",
        "triangular_solve", "cholesky", "delta", "rng_algorithm", "domain_entry", "domain_exit",
        "padding_type", "unique_indices",
    }
)  # fmt: skip


@cache
def readers() -> Mapping[str, tuple[str, Callable[[Any], object]]]:
    """By field of the message: the field of ``Instruction``, and how its value is read."""
    same: dict[str, Callable[[Any], object]] = {
        "parameter_number": int, "tuple_index": int, "dimensions": tuple, "operands": tuple, "called": tuple,
        "feature_groups": int, "batch_groups": int, "feature_index": int, "epsilon": float, "direction": str,
        "target": str, "backend_config": bytes, "side_effect": bool, "channel": int, "global_ids": bool,
        "exponent_bits": int, "mantissa_bits": int, "k": int, "largest": bool, "stable": bool,
        "metadata": _metadata, "dot": _dot, "gather": _gather, "conv": _conv,
        "slices": lambda slices: tuple((s.start, s.limit, s.stride) for s in slices),
        "padding": lambda padding: tuple((d.low, d.high, d.interior) for d in padding.dimensions),
        "window": lambda window: tuple(_window_dim(d) for d in window.dimensions),
        "pairs": lambda pairs: tuple((pair.source, pair.target) for pair in pairs),
        "groups": lambda groups: tuple(tuple(group.ids) for group in groups),
        "distribution": lambda number: {1: "uniform", 2: "normal"}.get(number, str(number)),
    }  # fmt: skip
    found = {name: (name, reader) for name, reader in same.items()}
    found["dynamic_slice_sizes"] = found["gather_sizes"] = ("sizes", tuple)
    found["scatter"] = ("gather", _gather)
    found["all_reduce_id"] = ("channel", int)
    found["devices"] = ("groups", _devices)
    return MappingProxyType(found)


def _metadata(message: Any) -> Metadata:
    return Metadata(shown(message.op_name), message.source_file, message.source_line, message.stack_frame_id)


def _dot(message: Any) -> DotDims:
    return DotDims(
        tuple(message.lhs_contracting),
        tuple(message.rhs_contracting),
        tuple(message.lhs_batch),
        tuple(message.rhs_batch),
    )


def _gather(message: Any) -> GatherDims:
    return GatherDims(
        tuple(message.offset),
        tuple(message.collapsed),
        tuple(message.start_map),
        message.index_vector,
        tuple(message.operand_batch),
        tuple(message.indices_batch),
    )


def _conv(message: Any) -> ConvDims:
    return ConvDims(
        message.input_batch,
        message.input_feature,
        tuple(message.input_spatial),
        message.kernel_input,
        message.kernel_output,
        tuple(message.kernel_spatial),
        message.output_batch,
        message.output_feature,
        tuple(message.output_spatial),
    )


def _window_dim(message: Any) -> WindowDim:
    return WindowDim(
        message.size,
        message.stride,
        message.low,
        message.high,
        message.window_dilation,
        message.base_dilation,
        message.reversal,
    )


def _devices(message: Any) -> tuple[tuple[int, ...], ...]:
    if message.HasField("iota"):
        iota = message.iota
        return iota_groups(iota.groups, iota.group_size, tuple(iota.reshape), tuple(iota.transpose))
    return tuple(tuple(group.ids) for group in message.groups)
