"""Remove environments, with their downloads, logs and locks."""

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from magneton.envs.lock import locked
from magneton.envs.place import MARKER, environments_folder, parts_of
from magneton.errors import MagnetonError


def remove(folders: Sequence[Path]) -> None:
    """Nothing of them is left. If one of them is in use, that is an error, and all stay."""
    with ExitStack() as locks:
        for folder in folders:
            locks.enter_context(locked(parts_of(folder)[-1], shared=False))
        for folder in folders:
            try:
                (folder / MARKER).unlink(missing_ok=True)  # from here on it does not count
                for part in parts_of(folder):
                    _remove(part)
            except OSError as error:
                raise MagnetonError(
                    f"cannot remove {error.filename or folder}: {error.strerror}",
                    hint="remove it by hand",
                ) from error
    with suppress(OSError):  # others are still in there
        environments_folder().rmdir()


def size_bytes(folders: Sequence[Path]) -> int:
    """What removing them frees."""
    parts = [part for folder in folders for part in parts_of(folder)]
    return sum(_size_bytes(part) for part in parts)


def _remove(part: Path) -> None:
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


def _size_bytes(part: Path) -> int:
    files = (
        [part] if part.is_file() else [Path(root, name) for root, _, names in os.walk(part) for name in names]
    )
    total_bytes = 0
    for file in files:
        with suppress(OSError):
            total_bytes += file.lstat().st_size
    return total_bytes
