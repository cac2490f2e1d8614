"""Results in files: written whole or not at all, and read as strictly as anything from elsewhere."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalify.errors import ScalifyError
from scalify.report.codec import CodecError, Read, document, plain, read
from scalify.report.result import Result

SCHEMA = "scalify.result"
VERSION = 1
MAX_FILE_BYTES = 1 << 28
_HOW = "`scalify verify ... -o result.json` writes one"
_WHERE = "-o wants a file in a folder that exists"


class InvalidResult(ScalifyError):
    """A file that is not a result of ours."""


def as_json(result: Result) -> str:
    """The result as one JSON object that says which schema it follows."""
    return document({"schema": SCHEMA, "version": VERSION, **plain(result)}, indent=2)


def check_place(path: Path) -> None:
    """Refuse a file that could not be written, before the work for it is done."""
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise ScalifyError(f"cannot write {path}", hint=_WHERE)


def save(result: Result, path: Path) -> None:
    """Write the JSON to a file."""
    written(as_json(result), path)


def written(text: str, path: Path) -> None:
    """Text into a file, whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text + "\n", encoding="ascii")
        partial.replace(path)
    except OSError as error:
        raise ScalifyError(f"cannot write {path}: {error.strerror}", hint=_WHERE) from None
    finally:
        partial.unlink(missing_ok=True)


def load(path: Path) -> Result:
    """The result in a file."""
    return loaded(Result, path, Format(SCHEMA, VERSION, MAX_FILE_BYTES, _HOW))


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: its name and version, how large it may be, and where users get such files from."""

    schema: str
    version: int
    most_bytes: int
    how: str


def loaded(kind: type[Read], path: Path, format: Format) -> Read:
    """What is in a file of a format, strictly read."""
    content = _parsed(path, format.most_bytes, format.how)
    if not isinstance(content, dict) or content.pop("schema", None) != format.schema:
        what = format.schema.partition(".")[2]
        raise InvalidResult(f"{path.name} is no {what} of scalify", hint=format.how)
    version = content.pop("version", None)
    if version != format.version:
        raise InvalidResult(
            f"{path.name} has version {version!r:.20}; this release reads {format.version}", hint=format.how
        )
    try:
        return read(kind, content)
    except CodecError as error:
        raise InvalidResult(f"{path.name} is damaged: {error}", hint=format.how) from None


def _parsed(path: Path, most_bytes: int, how: str) -> Any:
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise InvalidResult(f"cannot read {path}: {error.strerror}", hint=how) from None
    if len(content) > most_bytes:
        raise InvalidResult(f"{path.name} is larger than {most_bytes >> 20} MiB", hint=how)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidResult(f"{path.name} is not JSON", hint=how) from None
