"""Where recordings lie while they are made, and whether there is room: asked before anything is measured."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from magneton.cache import cache_folder
from magneton.errors import MagnetonError

MIB = 1 << 20
ROOM_FOR_RUN_BYTES = 256 * MIB


@contextmanager
def run_folder() -> Generator[Path, None, None]:
    """A new folder in the user's cache. It goes when the block succeeds; when it fails, its content stays."""
    runs = cache_folder() / "runs"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        check_room(runs, ROOM_FOR_RUN_BYTES)
        prefix = f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}-"
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=runs))
    except OSError as error:
        raise MagnetonError(
            f"cannot write into {runs}: {error.strerror}",
            hint="set MAGNETON_CACHE to a folder that you may write to",
        ) from error
    try:
        yield folder
    except BaseException:
        with suppress(OSError):  # what is in it is kept
            folder.rmdir()
        raise
    shutil.rmtree(folder, ignore_errors=True)


def check_room(folder: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise MagnetonError(
            f"{folder} has {free_bytes // MIB} MiB left; a recording may need {needed_bytes // MIB} MiB",
            hint="free some space, or set MAGNETON_CACHE to a folder with more",
        )
