"""The user's cache folder, and how something large gets into it: built aside, then renamed.

A folder in the cache is therefore complete or absent. Two processes that build the same thing at once
both succeed; the first rename wins and the other copy is thrown away.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from magneton.errors import MagnetonError


def cache_folder() -> Path:
    """``MAGNETON_CACHE``, else ``magneton`` in ``XDG_CACHE_HOME``, else in ``~/.cache``."""
    if chosen := os.environ.get("MAGNETON_CACHE"):
        return Path(chosen).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "magneton"


def built_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """``folder``, after ``build`` has filled an empty folder beside it that takes its name; or as it is."""
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            build(aside)
            aside.chmod(0o755)
            _rename(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise MagnetonError(
            f"cannot fill the cache at {folder}: {error.strerror or error}",
            hint="make room there, or set MAGNETON_CACHE to a folder you can write",
        ) from error
    return folder


def _rename(aside: Path, folder: Path) -> None:
    try:
        aside.rename(folder)
    except OSError:
        if not folder.is_dir():  # anything but another process having been first
            raise
