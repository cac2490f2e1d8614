"""What stands after the operands of an instruction: ``dimensions={0,1}, to_apply=%add``.

Each attribute that decides what an instruction computes has a reader here. Some are stepped over (see
``schema`` for the same decisions on the serialized form), some only tell opaque operations apart; any other
is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from scalify.errors import UnsupportedFormat
from scalify.load.hlo.groups import iota_groups
from scalify.load.hlo.program import ConvDims, DotDims, GatherDims, Metadata, WindowDim, shown
from scalify.load.hlo.text.tokens import Cursor, unquoted
from scalify.load.hlo.text.values import bracketed, float_of, integers, lists, parenthesized

_SKIPPED = frozenset(
    {
        "sharding", "frontend_attributes", "control-predecessors", "operand_layout_constraints", "kind",
        "custom_call_schedule", "schedule", "api_version", "statistics", "type", "operand_precision",
        "indices_are_sorted", "output_to_operand_aliasing", "async_execution_thread", "origin",
        "original_value", "result_accuracy", "is_composite", "parameter_replication", "constrain_layout",
        "cross_program_prefetch_index", "is_cross_program_prefetch", "entry", "exit",
    }
)  # fmt: skip
_EXTRAS = frozenset(
    {
        "fft_type", "fft_length", "is_host_transfer", "algorithm", "unique_indices", "left_side", "lower",
        "unit_diagonal", "transpose_a", "delta", "infeed_config", "outfeed_config", "outfeed_shape",
        "padding_type",
    }
)  # fmt: skip
_CALLED = frozenset(
    {"to_apply", "calls", "condition", "body", "true_computation", "false_computation", "select", "scatter"}
)
_CALLED_LISTS = frozenset({"branch_computations", "called_computations"})


class Attributes:
    """The attributes of one instruction. ``values`` are fields of ``Instruction``; ``called`` are names."""

    def __init__(self, opcode: str) -> None:
        self._opcode = opcode
        self.values: dict[str, Any] = {}
        self.called: list[str] = []
        self._extras: list[tuple[str, str]] = []
        self._dot = DotDims()
        self._gather = GatherDims()

    def read(self, cursor: Cursor, where: str) -> None:
        """All of ``, key=value``."""
        while cursor.take(","):
            key = cursor.word("an attribute")
            cursor.expect("=")
            self._read_one(cursor, key, where)
        if self._extras:
            self.values["extras"] = tuple(self._extras)

    def _read_one(self, cursor: Cursor, key: str, where: str) -> None:
        if key in _READERS:
            field, read = _READERS[key]
            self.values[field] = read(cursor)
        elif key in _DOT:
            self._dot = self.values["dot"] = replace(self._dot, **{_DOT[key]: integers(cursor)})
        elif key in _GATHER:
            value = cursor.integer() if key == "index_vector_dim" else integers(cursor)
            self._gather = self.values["gather"] = replace(self._gather, **{_GATHER[key]: value})
        elif key == "scatter" and self._opcode != "select-and-scatter":
            raise cursor.wrong("only select-and-scatter has a computation 'scatter'")
        elif key in _CALLED:
            self.called.append(cursor.name("a computation"))
        elif key in _CALLED_LISTS:
            self.called += _names(cursor)
        elif key in _EXTRAS:
            self._extras.append((key, cursor.raw()))
        elif key in _SKIPPED:
            cursor.raw()
        else:
            raise UnsupportedFormat(
                f"{where} has the attribute {key[:60]!r}, which this release does not know",
                hint="its meaning could change the result; upgrade scalify or use an older compiler",
            )


def _names(cursor: Cursor) -> list[str]:
    cursor.expect("{")
    names: list[str] = []
    while not cursor.take("}"):
        names.append(cursor.name("a computation"))
        cursor.take(",")
    return names


def _truth(cursor: Cursor) -> bool:
    word = cursor.word("true or false")
    if word not in {"true", "false"}:
        raise cursor.wrong(f"expected true or false, found {word[:40]!r}")
    return word == "true"


def _metadata(cursor: Cursor) -> Metadata:
    """``{op_name="..." source_file="..." source_line=3}``; other keys are stepped over."""
    found: dict[str, str] = {}
    cursor.expect("{")
    while not cursor.take("}"):
        key = cursor.word("a key")
        cursor.expect("=")
        found[key] = cursor.string() if cursor.at_string else cursor.raw()
        cursor.take(",")
    return Metadata(
        shown(found.get("op_name", "")),
        found.get("source_file", ""),
        _number(cursor, found.get("source_line", "0")),
        _number(cursor, found.get("stack_frame_id", "0")),
    )


def _number(cursor: Cursor, text: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) < 10):
        raise cursor.wrong(f"{text[:40]!r} is no line number")
    return int(text)


def _slices(cursor: Cursor) -> tuple[tuple[int, int, int], ...]:
    """``{[0:2], [1:9:2]}``."""
    cursor.expect("{")
    found: list[tuple[int, int, int]] = []
    while not cursor.take("}"):
        cursor.expect("[")
        start = cursor.integer()
        cursor.expect(":")
        limit = cursor.integer()
        found.append((start, limit, cursor.integer() if cursor.take(":") else 1))
        cursor.expect("]")
        cursor.take(",")
    return tuple(found)


def _padding(cursor: Cursor) -> tuple[tuple[int, int, int], ...]:
    """``0_0x1_2_1``: low, high and interior of each dimension; nothing for a scalar."""
    if cursor.kind != "word":
        return ()
    found: list[tuple[int, int, int]] = []
    for dimension in cursor.advance().split("x"):
        amounts = [_signed(cursor, text) for text in dimension.split("_")]
        if len(amounts) not in (2, 3):
            raise cursor.wrong(f"padding {dimension[:40]!r} is not low_high or low_high_interior")
        found.append((amounts[0], amounts[1], amounts[2] if len(amounts) == 3 else 0))
    return tuple(found)


def _signed(cursor: Cursor, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isdecimal() and digits.isascii() and len(digits) < 19):
        raise cursor.wrong(f"{text[:40]!r} is no integer")
    return int(text)


def _window(cursor: Cursor) -> tuple[WindowDim, ...]:
    """``{size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}``."""
    columns: dict[str, list[str]] = {}
    cursor.expect("{")
    while not cursor.take("}"):
        key = cursor.word("a key of the window")
        if key not in {"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"}:
            raise cursor.wrong(f"a window has no {key[:40]!r}")
        cursor.expect("=")
        columns[key] = cursor.word("a value").split("x")
    count = len(columns.get("size", ()))
    if any(len(column) != count for column in columns.values()):
        raise cursor.wrong("the parts of the window are of different dimensions")
    return tuple(_window_dim(cursor, columns, index) for index in range(count))


def _window_dim(cursor: Cursor, columns: Mapping[str, list[str]], index: int) -> WindowDim:
    def at(key: str, default: int) -> int:
        return _signed(cursor, columns[key][index]) if key in columns else default

    low, _, high = columns["pad"][index].partition("_") if "pad" in columns else ("0", "_", "0")
    return WindowDim(
        at("size", 1),
        at("stride", 1),
        _signed(cursor, low),
        _signed(cursor, high),
        at("rhs_dilate", 1),
        at("lhs_dilate", 1),
        at("rhs_reversal", 0) != 0,
    )


def _dim_labels(cursor: Cursor) -> ConvDims:
    """``b01f_01io->b01f``: b batch, f feature, i and o the kernel's features, digits spatial dimensions."""
    left = cursor.word("dimension labels")
    cursor.expect("->")
    output = cursor.word("dimension labels")
    x, _, kernel = left.partition("_")
    x_batch, x_feature, x_spatial = _places(cursor, x, "bf")
    kernel_input, kernel_output, kernel_spatial = _places(cursor, kernel, "io")
    batch, feature, spatial = _places(cursor, output, "bf")
    return ConvDims(
        x_batch, x_feature, x_spatial, kernel_input, kernel_output, kernel_spatial, batch, feature, spatial
    )


def _places(cursor: Cursor, labels: str, pair: str) -> tuple[int, int, tuple[int, ...]]:
    digits = "".join(str(number) for number in range(min(len(labels) - 2, 10)))
    if sorted(labels) != sorted(digits + pair):
        raise cursor.wrong(f"{labels[:40]!r} does not label dimensions")
    return labels.index(pair[0]), labels.index(pair[1]), tuple(map(labels.index, digits))


def _groups(cursor: Cursor) -> tuple[tuple[int, ...], ...]:
    """``{{0,1},{2,3}}``, or ``[2,4]<=[8]`` and ``[4,2]<=[2,4]T(1,0)``."""
    if cursor.text != "[":
        return lists(cursor)
    sizes = bracketed(cursor)
    cursor.expect("<=")
    reshape = bracketed(cursor)
    transpose = parenthesized(cursor) if cursor.take("T") else ()
    if len(sizes) != 2:
        raise cursor.wrong("replica groups are of two dimensions: groups and members")
    return iota_groups(sizes[0], sizes[1], reshape, transpose)


def _pairs(cursor: Cursor) -> tuple[tuple[int, int], ...]:
    pairs = lists(cursor)
    if any(len(pair) != 2 for pair in pairs):
        raise cursor.wrong("pairs are of a source and a target")
    return tuple((pair[0], pair[1]) for pair in pairs)


def _backend_config(cursor: Cursor) -> bytes:
    text = cursor.raw()
    return (unquoted(text) if text.startswith('"') else text).encode()


_Reader = Callable[[Cursor], object]
_READERS: Mapping[str, tuple[str, _Reader]] = MappingProxyType(
    {
        "metadata": ("metadata", _metadata),
        "dimensions": ("dimensions", integers),
        "iota_dimension": ("dimensions", lambda cursor: (cursor.integer(),)),
        "slice": ("slices", _slices),
        "padding": ("padding", _padding),
        "dynamic_slice_sizes": ("sizes", integers),
        "slice_sizes": ("sizes", integers),
        "window": ("window", _window),
        "dim_labels": ("conv", _dim_labels),
        "feature_group_count": ("feature_groups", Cursor.integer),
        "batch_group_count": ("batch_groups", Cursor.integer),
        "feature_index": ("feature_index", Cursor.integer),
        "epsilon": ("epsilon", float_of),
        "direction": ("direction", lambda cursor: cursor.word("a direction")),
        "index": ("tuple_index", Cursor.integer),
        "custom_call_target": ("target", Cursor.string),
        "custom_call_has_side_effect": ("side_effect", _truth),
        "backend_config": ("backend_config", _backend_config),
        "replica_groups": ("groups", _groups),
        "source_target_pairs": ("pairs", _pairs),
        "channel_id": ("channel", Cursor.integer),
        "use_global_device_ids": ("global_ids", _truth),
        "exponent_bits": ("exponent_bits", Cursor.integer),
        "mantissa_bits": ("mantissa_bits", Cursor.integer),
        "distribution": ("distribution", lambda cursor: cursor.word("a distribution").removeprefix("rng_")),
        "is_stable": ("stable", _truth),
        "k": ("k", Cursor.integer),
        "largest": ("largest", _truth),
    }
)
_DOT = MappingProxyType(
    {
        "lhs_contracting_dims": "lhs_contracting",
        "rhs_contracting_dims": "rhs_contracting",
        "lhs_batch_dims": "lhs_batch",
        "rhs_batch_dims": "rhs_batch",
    }
)
_GATHER = MappingProxyType(
    {
        "offset_dims": "offset",
        "update_window_dims": "offset",
        "collapsed_slice_dims": "collapsed",
        "inserted_window_dims": "collapsed",
        "start_index_map": "start_map",
        "scatter_dims_to_operand_dims": "start_map",
        "index_vector_dim": "index_vector",
        "operand_batching_dims": "operand_batch",
        "input_batching_dims": "operand_batch",
        "start_indices_batching_dims": "indices_batch",
        "scatter_indices_batching_dims": "indices_batch",
    }
)
