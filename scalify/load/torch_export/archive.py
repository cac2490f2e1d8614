"""The members of a torch.export archive, read as zip and JSON and never unpickled.

An archive holds ``models/NAME.json`` (graph and signature), ``data/weights`` and ``data/constants`` (a
JSON table and one raw file per storage) and what the writer added under ``extra/``. Sizes are bounded
before anything is read; names inside the archive are looked up, never written to.
"""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self, cast

from scalify.errors import InvalidGraph, UnsupportedFormat

JSON_BYTES_LIMIT = 192 * 2**20
MEMBERS_LIMIT = 200_000

Json = Mapping[str, object]


class Archive:
    """An open archive. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, NotImplementedError, UnicodeDecodeError) as error:
            raise InvalidGraph(
                f"{path.name} cannot be read as an archive: {error}",
                hint="write it again with `scalify capture` or torch.export.save",
            ) from error
        self._members = self._index()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def _index(self) -> dict[str, zipfile.ZipInfo]:
        """Members by their path below the archive's one top folder."""
        infos = self._zip.infolist()
        if len(infos) > MEMBERS_LIMIT:
            raise InvalidGraph(
                f"{self.path.name} holds {len(infos)} files; at most {MEMBERS_LIMIT} are read",
                hint="export one module at a time",
            )
        return {str(PurePosixPath(*PurePosixPath(info.filename).parts[1:])): info for info in infos}

    def has(self, member: str) -> bool:
        """Whether there is such a file."""
        return member in self._members

    def model(self) -> str:
        """The name of the one graph inside."""
        names = sorted(
            name for name in self._members if name.startswith("models/") and name.endswith(".json")
        )
        if not names:
            raise UnsupportedFormat(
                f"{self.path.name} holds no exported graph, only objects that loading would have to execute",
                hint="export it with `scalify capture module.py:build`, which needs its source",
            )
        if len(names) > 1:
            raise UnsupportedFormat(
                f"{self.path.name} holds {len(names)} graphs: {', '.join(names[:4])}",
                hint="save one exported program per file",
            )
        return PurePosixPath(names[0]).stem

    def digest(self, member: str) -> str:
        """What tells a member from any other."""
        return hashlib.sha256(self.read(member, JSON_BYTES_LIMIT)).hexdigest()[:16]

    def json(self, member: str) -> Json:
        """A member that is one JSON object."""
        text = self.read(member, JSON_BYTES_LIMIT)
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidGraph(
                f"{member} in {self.path.name} is not JSON: {error}", hint="export it again"
            ) from error
        if not isinstance(value, dict):
            raise InvalidGraph(f"{member} in {self.path.name} is not a JSON object", hint="export it again")
        return cast(Json, value)

    def read(self, member: str, limit_bytes: int) -> bytes:
        """A member's bytes; more than the limit, or a damaged member, is an error."""
        info = self._members.get(member)
        if info is None:
            raise InvalidGraph(f"{self.path.name} lacks {member}", hint="export it again")
        if info.file_size > limit_bytes:
            raise InvalidGraph(
                f"{member} in {self.path.name} holds {info.file_size} bytes; at most {limit_bytes} are read",
                hint="export a smaller part of the model",
            )
        try:
            with self._zip.open(info) as stream:
                content = stream.read(limit_bytes + 1)
        except (
            zipfile.BadZipFile,
            OSError,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            raise InvalidGraph(
                f"{member} in {self.path.name} is damaged: {error}", hint="export it again"
            ) from error
        if len(content) != info.file_size:
            raise InvalidGraph(
                f"{member} in {self.path.name} is not of the size it says", hint="export it again"
            )
        return content
