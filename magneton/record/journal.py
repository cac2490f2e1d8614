"""The folder a worker writes into while it records: JSON lines, a file per kind of row, flushed row by row.

What was written survives whatever happens to the worker afterwards. The parent reads the folder back
as a ``Profile`` (``assemble.read_journal``) and packs it into one file.
"""

import errno
import io
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Literal, Self
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from magneton.errors import MagnetonError
from magneton.profile.model import (
    BlockReading,
    Conditions,
    Doubt,
    IdlePower,
    Kernel,
    Operator,
    OpId,
    PowerSample,
    ReplayKey,
    ReplayReading,
    ScopeTime,
    Stack,
    Value,
    ValueId,
)
from magneton.profile.origin import Origin
from magneton.profile.sketches import Sketch
from magneton.record.codec import encode
from magneton.workload import Phase

Stretch = Literal["block", "replay", "idle"]  # what a window lies over

ORIGIN_FILE = "origin.json"
OUTPUTS_FOLDER = "outputs"
TRACED_FILE = "traced"
REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchRow:
    """The sketch of one value; None where it was looked at and has none."""

    value_id: ValueId
    sketch: Sketch | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDuration:
    """How long one traced operator took in one step of a timeline block."""

    op_id: OpId
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A window that was read and not used, because of the conditions under which it was read."""

    kind: Stretch
    phase: Phase  # "" for a window at rest
    why: str


Row = (
    Operator
    | Value
    | SketchRow
    | Stack
    | ReplayKey
    | Kernel
    | PowerSample
    | BlockReading
    | ReplayReading
    | ScopeTime
    | Conditions
    | IdlePower
    | Doubt
    | OperatorDuration
    | Rejected
)

# Stacks have no id of their own: their position in the file is their id.
TABLES: Mapping[type[Row], str] = MappingProxyType(
    {
        Operator: "operators",
        Value: "values",
        SketchRow: "sketches",
        Stack: "stacks",
        ReplayKey: "keys",
        Kernel: "kernels",
        PowerSample: "samples",
        BlockReading: "blocks",
        ReplayReading: "replays",
        ScopeTime: "scopes",
        Conditions: "conditions",
        IdlePower: "idle",
        Doubt: "doubts",
        OperatorDuration: "durations",
        Rejected: "rejected",
    }
)


def open_unbuffered(path: Path) -> io.RawIOBase:
    """One ``write`` system call per row: nothing of ours is lost when the process is killed."""
    return path.open("ab", buffering=0)


def mark_traced(folder: Path) -> None:
    """The side that writes into ``folder`` has written down every phase's operators and values."""
    with _disk_may_refuse(folder):
        (folder / TRACED_FILE).touch()


def is_traced(folder: Path) -> bool:
    return (folder / TRACED_FILE).is_file()


class Journal:
    """Append-only: a row that supersedes an earlier one of the same id is appended like any other."""

    def __init__(self, folder: Path, *, opener: Callable[[Path], io.RawIOBase] = open_unbuffered) -> None:
        self.folder = folder
        self._opener = opener
        self._files: dict[str, io.RawIOBase] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def append(self, row: Row) -> None:
        """Write one row into the file of its kind."""
        table = TABLES[type(row)]
        line = encode(row).encode("ascii") + b"\n"
        with _disk_may_refuse(self.folder):
            file = self._files.get(table)
            if file is None:
                file = self._files[table] = self._opener(self.folder / f"{table}.jsonl")
            _write_all(file, line)

    def append_sketch(self, value_id: ValueId, sketch: Sketch | None) -> None:
        self.append(SketchRow(value_id=value_id, sketch=sketch))

    def append_duration(self, op_id: OpId, duration_s: float) -> None:
        self.append(OperatorDuration(op_id=op_id, duration_s=duration_s))

    def save_output(self, name: str, array: NDArray[np.generic]) -> None:
        """Keep one declared output; whole or not at all."""
        content = io.BytesIO()
        np.save(content, array, allow_pickle=False)
        folder = self.folder / OUTPUTS_FOLDER
        folder.mkdir(exist_ok=True)
        self._replace(folder / f"{quote(name, safe='')}.npy", content.getvalue())

    def write_origin(self, origin: Origin) -> None:
        self._replace(self.folder / ORIGIN_FILE, encode(origin).encode("ascii"))

    def _replace(self, path: Path, content: bytes) -> None:
        unfinished = path.with_name(path.name + ".part")
        with _disk_may_refuse(self.folder):
            unfinished.write_bytes(content)
            unfinished.replace(path)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _write_all(file: io.RawIOBase, line: bytes) -> None:
    """A nearly full disk takes part of a line and refuses the rest only when asked again."""
    rest = memoryview(line)
    while rest:
        rest = rest[file.write(rest) or 0 :]


@contextmanager
def _disk_may_refuse(folder: Path) -> Generator[None, None, None]:
    """Turns the disk's refusals into an error that the user can put right."""
    try:
        yield
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        raise MagnetonError(
            f"cannot write the recording into {folder}: {os.strerror(error.errno)}",
            hint="free some space, or set MAGNETON_CACHE to a folder with more",
        ) from error
