"""Which kind of file it is, by its content and never by its name.

In: a path. Out: the kind of graph in it. What is not a graph, or could only be read by running code from it
(pickles), is refused with what to do instead. At most a few KiB and a zip's table of contents are read.
"""

import re
import zipfile
from enum import Enum
from pathlib import Path, PurePosixPath

from scalify.errors import InvalidGraph, UnsupportedFormat

_HEAD_BYTES = 4096
_ZIP_MAGIC = b"PK\x03\x04"
_CAPTURE = "scalify reads graphs, not objects: `scalify capture module.py:build -o graph.pt` writes one"
_MLIR_BYTECODE = b"ML\xefR"
# A module, a function, or the names that MLIR prints for locations before them.
_MLIR_TEXT = re.compile(r'module[ {@]|"builtin\.module"|func\.func |#loc\d* = loc\(')
_WIRE_TYPES = (0, 1, 2, 5)
_LAST_TOP_FIELD = 20
_ONNX_FIRST = 0x08  # the version of the format, a number; an HLO module's first field is a text or a message


class Kind(Enum):
    """The formats that are read."""

    HLO_PROTOBUF = "serialized HLO module"
    HLO_TEXT = "HLO text"
    SCALIFY_TEXT = "scalify text"
    TORCH_EXPORT = "torch.export archive"
    ONNX = "ONNX model"
    STABLEHLO = "StableHLO"


def kind_of(path: Path) -> Kind:
    """The kind of graph in the file."""
    head = _head(path)
    if not head:
        raise InvalidGraph(f"{path.name} is empty", hint="write the graph again")
    if head.startswith(_ZIP_MAGIC):
        return _kind_of_zip(path)
    if head.startswith(_MLIR_BYTECODE):
        return Kind.STABLEHLO
    text = _as_text(head)
    if text is not None:
        return _kind_of_text(path, text)
    if _is_pickle(head):
        raise UnsupportedFormat(
            f"{path.name} is a pickle; loading one runs code from the file", hint=_CAPTURE
        )
    if head[0] == _ONNX_FIRST:
        return Kind.ONNX
    if _is_protobuf(head):
        return Kind.HLO_PROTOBUF
    raise UnsupportedFormat(f"{path.name} is not a graph in a format that scalify reads", hint=_formats())


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidGraph(f"cannot read {path}: {reason}", hint="give the path of a graph") from None


def _kind_of_zip(path: Path) -> Kind:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, UnicodeDecodeError, NotImplementedError) as error:
        raise InvalidGraph(
            f"{path.name} is a damaged zip archive: {error}", hint="write the graph again"
        ) from None
    if any(member.startswith("models/") for member in members):
        return Kind.TORCH_EXPORT
    if "constants.pkl" in members:
        raise UnsupportedFormat(
            f"{path.name} is a TorchScript program, which scalify cannot read", hint=_CAPTURE
        )
    if "data.pkl" in members:
        raise UnsupportedFormat(
            f"{path.name} was written by torch.save: a pickle; loading one runs code from the file",
            hint=_CAPTURE,
        )
    raise UnsupportedFormat(f"{path.name} is a zip archive without a graph", hint=_formats())


def _as_text(head: bytes) -> str | None:
    """The head as text, unless it holds bytes that no text has. A long file may be cut within a character."""
    if b"\0" in head:
        return None
    for cut in range(4 if len(head) == _HEAD_BYTES else 1):
        try:
            text = head[: len(head) - cut].decode()
        except UnicodeDecodeError:
            continue
        controls = sum(not (character.isprintable() or character in "\t\n\r") for character in text)
        return None if controls else text
    return None


def _kind_of_text(path: Path, text: str) -> Kind:
    from scalify.ir.text.parser import HEADER

    lines = [line.strip() for line in text.splitlines()]
    first = next((line for line in lines if line and not line.startswith("//")), "")
    if first.startswith("HloModule"):
        return Kind.HLO_TEXT
    if _MLIR_TEXT.match(first):
        return Kind.STABLEHLO
    if text.startswith(HEADER):
        return Kind.SCALIFY_TEXT
    raise UnsupportedFormat(f"{path.name} is text, but not a graph that scalify reads", hint=_formats())


def _is_pickle(head: bytes) -> bool:
    """Protocol 2 and up begin with their number; older ones do not occur for models."""
    return len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5


def _is_protobuf(head: bytes) -> bool:
    """Whether it begins as a serialized HLO module does: with a low field number and a known wire type."""
    return head[0] >> 3 in range(1, _LAST_TOP_FIELD + 1) and head[0] & 7 in _WIRE_TYPES and head[0] < 0x80


def _formats() -> str:
    return (
        "it reads archives of `scalify capture` and torch.export.save, "
        "HLO modules (serialized or text), StableHLO, ONNX models, and scalify text"
    )
