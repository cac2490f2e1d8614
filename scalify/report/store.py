"""Results in files: written whole or not at all, and read as strictly as anything from elsewhere."""

import json
import os
from pathlib import Path
from typing import Any

from scalify.errors import ScalifyError
from scalify.report.codec import CodecError, document, plain, read
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
    content = parsed(path, MAX_FILE_BYTES, _HOW)
    if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA:
        raise InvalidResult(f"{path.name} is no result of scalify", hint=_HOW)
    version = content.pop("version", None)
    if version != VERSION:
        raise InvalidResult(
            f"{path.name} has version {version!r:.20}; this release reads {VERSION}", hint=_HOW
        )
    try:
        return read(Result, content)
    except CodecError as error:
        raise InvalidResult(f"{path.name} is damaged: {error}", hint=_HOW) from None


def parsed(path: Path, most_bytes: int, how: str) -> Any:
    """What the JSON in a file says; ``how`` tells users where such files come from."""
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
