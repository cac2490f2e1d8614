"""A place for a file, made sure of before the work whose result goes there."""

import errno
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from magneton.errors import MagnetonError

ROOM_BYTES = 8 * 1024 * 1024  # held free during a measurement; a usual profile takes less

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


class Output:
    """A file being written under a temporary name next to where it will lie."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file

    def write(self, data: bytes) -> None:
        """Fill the file with ``data`` and put it in place of what was at ``path``."""
        try:
            self._file.seek(0)
            self._file.write(data)
            self._file.truncate()
            _sync(self._file)
            Path(self._file.name).replace(self.path)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        _sync_folder(self.path.parent)


@contextmanager
def reserve(path: Path, *, room_bytes: int = ROOM_BYTES) -> Generator[Output]:
    """Open the output and hold ``room_bytes`` of space, so that a full disk shows before a measurement.

    Nothing at ``path`` changes unless and until ``write`` succeeds; the temporary file goes in any case.
    """
    file = _open_beside(path)
    try:
        _hold(path, file, room_bytes)
        yield Output(path, file)
    finally:
        with suppress(OSError):  # what could not be written has been reported, or nobody asked for it
            file.close()
        Path(file.name).unlink(missing_ok=True)


def _open_beside(path: Path) -> BinaryIO:
    try:
        if path.exists() and not path.is_file():
            raise MagnetonError(
                f"cannot write {path}: it is there and not a file", hint="choose another name"
            )
        return (path.parent / f".magneton-{secrets.token_hex(6)}.part").open("xb")
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> MagnetonError:
    """``error`` as the user should read it."""
    if error.errno in _FULL:
        hint = "free some space, or choose another place"
    elif error.errno in _FORBIDDEN:
        hint = "choose a folder that you may write to"
    else:
        hint = "choose another place; its folder has to exist"
    return MagnetonError(f"cannot write {path}: {error.strerror}", hint=hint)


def _hold(path: Path, file: BinaryIO, room_bytes: int) -> None:
    try:
        file.write(bytes(room_bytes))
        _sync(file)
    except OSError as error:
        raise cannot_write(path, error) from error


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the rename last. Some filesystems cannot; the file itself is safe by then."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
