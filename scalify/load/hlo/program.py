"""An HLO module as the readers hand it on: what the file says, checked for form and not yet for meaning.

The protobuf reader and the text reader both produce these values; ``translate`` turns them into a graph.
Computations and instructions refer to each other by the ids of the file. What a field means is in XLA's
operation semantics; here it is only typed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from scalify.errors import InvalidGraph

MAX_INSTRUCTIONS = 2_000_000
MAX_NAME = 512


def shown(text: str) -> str:
    """Text from a file, fit for a line of a message: control characters are escaped."""
    return text if text.isprintable() else repr(text)


def checked_name(name: str) -> str:
    """A name as messages and graphs may carry it: on one line, without control characters, not endless."""
    if not name.isprintable() or len(name) > MAX_NAME:
        raise InvalidGraph(
            f"{name[:40]!r} cannot be a name in HLO", hint="the file is damaged; write it again"
        )
    return name


@dataclass(frozen=True, slots=True)
class Shape:
    """``element`` is HLO's own name: ``f32``, ``pred``, ``tuple``, ``token``. ``parts`` are a tuple's.

    ``minor_to_major`` is None where the file gives no layout; ``tiled`` says that the layout is more than an
    order of the dimensions.
    """

    element: str
    dims: tuple[int, ...] = ()
    parts: tuple["Shape", ...] = ()
    minor_to_major: tuple[int, ...] | None = None
    tiled: bool = False


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant's elements: little-endian bytes, row-major."""

    shape: Shape
    data: bytes


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where the instruction came from, by the word of the compiler in front."""

    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    stack_frame: int = 0


@dataclass(frozen=True, slots=True)
class DotDims:
    """Which dimensions of a dot's two operands are contracted, and which are batch."""

    lhs_contracting: tuple[int, ...] = ()
    rhs_contracting: tuple[int, ...] = ()
    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GatherDims:
    """Gather's dimension numbers, and scatter's under their gather names.

    ``offset`` are scatter's update_window_dims, ``collapsed`` its inserted_window_dims, ``start_map`` its
    scatter_dims_to_operand_dims.
    """

    offset: tuple[int, ...] = ()
    collapsed: tuple[int, ...] = ()
    start_map: tuple[int, ...] = ()
    index_vector: int = 0
    operand_batch: tuple[int, ...] = ()
    indices_batch: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ConvDims:
    """Which dimension of input, kernel and output plays which part."""

    input_batch: int = 0
    input_feature: int = 0
    input_spatial: tuple[int, ...] = ()
    kernel_input: int = 0
    kernel_output: int = 0
    kernel_spatial: tuple[int, ...] = ()
    output_batch: int = 0
    output_feature: int = 0
    output_spatial: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowDim:
    """One dimension of a window."""

    size: int = 1
    stride: int = 1
    low: int = 0
    high: int = 0
    window_dilation: int = 1
    base_dilation: int = 1
    reversal: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. Fields that its opcode has no use for stand at their defaults.

    ``extras`` holds attributes that no translation reads (``fft_type``), as text: they only keep two opaque
    operations apart. ``groups`` is None where the file names none.
    """

    name: str
    opcode: str
    id: int
    shape: Shape
    operands: tuple[int, ...] = ()
    called: tuple[int, ...] = ()
    metadata: Metadata | None = None
    literal: Literal | None = None
    parameter_number: int = 0
    tuple_index: int = 0
    dimensions: tuple[int, ...] = ()
    slices: tuple[tuple[int, int, int], ...] = ()
    sizes: tuple[int, ...] = ()
    padding: tuple[tuple[int, int, int], ...] = ()
    dot: DotDims | None = None
    gather: GatherDims | None = None
    conv: ConvDims | None = None
    window: tuple[WindowDim, ...] = ()
    feature_groups: int = 1
    batch_groups: int = 1
    feature_index: int = 0
    epsilon: float = 0.0
    direction: str = ""
    target: str = ""
    backend_config: bytes = b""
    side_effect: bool = False
    groups: tuple[tuple[int, ...], ...] | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    channel: int = 0
    global_ids: bool = False
    exponent_bits: int = 0
    mantissa_bits: int = 0
    distribution: str = ""
    stable: bool = False
    k: int = 0
    largest: bool = False
    extras: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Computation:
    """Instructions in an order in which each comes after its operands; ``root`` is the id of the result."""

    name: str
    id: int
    root: int
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Alias:
    """An output (path in the root's tuple) that takes over the buffer of a parameter (path in its tuple)."""

    output: tuple[int, ...]
    parameter: int
    parameter_path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """One entry of the module's table of stack frames; ``parent`` is 0 at the outermost."""

    file: str
    function: str
    line: int
    parent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A whole file. ``replicas`` and ``partitions`` are None where it does not state them.

    ``axes`` are those of a mesh with names, slowest first, that the partitions stand on.
    """

    name: str
    entry: int
    computations: Mapping[int, Computation]
    aliases: tuple[Alias, ...] = ()
    frames: Mapping[int, Frame] = field(default_factory=lambda: MappingProxyType({}))
    replicas: int | None = None
    partitions: int | None = None
    axes: tuple[tuple[str, int], ...] = ()
