"""The tables of a profile file, column by column (docs/formats.md says what each means).

Every column is flat and of a fixed width; text is an index into the file's one list of strings. So a
table needs at most its rows times its width in memory, whatever its bytes claim: dictionary, run-length
and prefix encodings of text and nesting levels, with which a few bytes unfold into gigabytes, cannot
occur. ``max_rows`` bounds the rows.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from magneton.profile.sketches import FREQUENCIES


class Kind(StrEnum):
    """What a column holds; the value names its Parquet physical type."""

    TEXT = "INT32, index into strings.jsonl"
    INT32 = "INT32"
    INT64 = "INT64"
    FLOAT64 = "DOUBLE"
    BOOL = "BOOLEAN"

    @property
    def physical_type(self) -> str:
        return self.value.partition(",")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    kind: Kind
    nullable: bool = False
    since: int = 1  # the first schema version that has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    max_rows: int
    since: int = 1  # the first schema version that has it

    @property
    def member(self) -> str:
        """Its file inside the archive."""
        return f"{self.name}.parquet"

    def as_of(self, version: int) -> "Table":
        """The table as files of schema ``version`` have it."""
        return replace(self, columns=tuple(column for column in self.columns if column.since <= version))

    @property
    def max_bytes(self) -> int:
        """Of that file, uncompressed: levels take at most four bytes a cell, page headers little."""
        return self.max_rows * len(self.columns) * (8 + 4) + 1024 * 1024


def _columns(kind: Kind, *names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, kind=kind) for name in names)


def _optional(kind: Kind, name: str) -> Column:
    return Column(name=name, kind=kind, nullable=True)


OPERATORS = Table(
    name="operators",
    columns=(
        *_columns(Kind.TEXT, "phase", "name", "attributes", "module_path", "effect"),
        *_columns(Kind.INT64, "stack_id", "key_id", "flops", "bytes_moved"),
        _optional(Kind.FLOAT64, "duration_s"),
        Column(name="scope", kind=Kind.TEXT, since=3),
    ),
    max_rows=500_000,
)
OPERANDS = Table(
    name="operands",
    columns=(*_columns(Kind.INT64, "op_id"), *_columns(Kind.TEXT, "slot"), *_columns(Kind.INT64, "value_id")),
    max_rows=3_000_000,
)
SKETCH_COUNTS = ("count", "pos_inf", "neg_inf", "nan", "huge")
COS_SUMS = tuple(f"cos_{i}" for i in range(FREQUENCIES))
SIN_SUMS = tuple(f"sin_{i}" for i in range(FREQUENCIES))
PROJECTIONS = ("projection_0", "projection_1")
VALUES = Table(
    name="values",
    columns=(
        *_columns(Kind.TEXT, "role", "name", "shape", "dtype"),
        _optional(Kind.INT64, "producer"),
        *_columns(Kind.INT64, "storage_id", "version"),
        *_columns(Kind.BOOL, "known"),
        *_columns(Kind.INT64, *SKETCH_COUNTS),
        *_columns(Kind.INT32, "distinct"),
        *_columns(Kind.FLOAT64, "rms"),
        *_columns(Kind.INT32, "first"),
        *_columns(Kind.FLOAT64, *COS_SUMS, *SIN_SUMS, *PROJECTIONS),
        Column(name="drift", kind=Kind.FLOAT64, nullable=True, since=2),
    ),
    max_rows=1_000_000,
)
STACKS = Table(
    name="stacks",
    columns=(
        *_columns(Kind.INT64, "stack_id"),
        *_columns(Kind.TEXT, "file"),
        *_columns(Kind.INT64, "line"),
        *_columns(Kind.TEXT, "function", "code"),
    ),
    max_rows=1_000_000,
)
KEYS = Table(name="keys", columns=(_optional(Kind.TEXT, "skipped"),), max_rows=500_000)
KERNELS = Table(
    name="kernels",
    columns=(
        *_columns(Kind.TEXT, "phase"),
        _optional(Kind.INT64, "op_id"),
        *_columns(Kind.TEXT, "name", "device"),
        *_columns(Kind.FLOAT64, "start_s", "duration_s"),
    ),
    max_rows=1_000_000,
)
SAMPLES = Table(
    name="samples",
    columns=(
        *_columns(Kind.TEXT, "phase"),
        *_columns(Kind.INT64, "round"),
        *_columns(Kind.FLOAT64, "time_s", "power_w"),
    ),
    max_rows=500_000,
)
BLOCKS = Table(
    name="blocks",
    columns=(
        *_columns(Kind.TEXT, "pass", "phase"),
        *_columns(Kind.INT64, "round"),
        *_columns(Kind.FLOAT64, "start_s"),
        *_columns(Kind.INT64, "steps"),
        *_columns(Kind.FLOAT64, "duration_s"),
        _optional(Kind.FLOAT64, "energy_j"),
        Column(name="host_energy_j", kind=Kind.FLOAT64, nullable=True, since=4),
        Column(name="gap", kind=Kind.TEXT, since=4),
        Column(name="agreement", kind=Kind.FLOAT64, nullable=True, since=4),
    ),
    max_rows=100_000,
)
REPLAYS = Table(
    name="replays",
    columns=(
        *_columns(Kind.INT64, "key_id", "round", "executions"),
        *_columns(Kind.FLOAT64, "duration_s"),
        _optional(Kind.FLOAT64, "energy_j"),
        Column(name="gap", kind=Kind.TEXT, since=4),
        Column(name="busy_share", kind=Kind.FLOAT64, nullable=True, since=4),
    ),
    max_rows=1_000_000,
)

SCOPES = Table(
    name="scopes",
    columns=(
        *_columns(Kind.TEXT, "phase", "scope"),
        *_columns(Kind.FLOAT64, "duration_s"),
        *_columns(Kind.INT64, "samples"),
    ),
    max_rows=10_000,
    since=3,
)

CONDITIONS = Table(
    name="conditions",
    columns=(
        *_columns(Kind.TEXT, "phase"),
        *_columns(Kind.INT64, "round"),
        *_columns(Kind.TEXT, "moment"),
        *_columns(Kind.FLOAT64, "time_s"),
        _optional(Kind.FLOAT64, "temperature_c"),
        _optional(Kind.FLOAT64, "clock_hz"),
        *_columns(Kind.TEXT, "throttle"),
        _optional(Kind.INT64, "foreign"),
    ),
    max_rows=100_000,
    since=4,
)
IDLE = Table(
    name="idle",
    columns=(
        *_columns(Kind.TEXT, "moment"),
        *_columns(Kind.FLOAT64, "time_s", "duration_s"),
        _optional(Kind.FLOAT64, "power_w"),
        _optional(Kind.FLOAT64, "host_power_w"),
    ),
    max_rows=1_000,
    since=4,
)

TABLES = (
    OPERATORS, OPERANDS, VALUES, STACKS, KEYS, KERNELS, SAMPLES, BLOCKS, REPLAYS, SCOPES, CONDITIONS, IDLE,
)  # fmt: skip
