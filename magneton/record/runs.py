"""Where recordings lie while they are made, and whether there is room: asked before anything is measured."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from magneton.cache import cache_folder
from magneton.errors import MagnetonError

MIB = 1 << 20
ROOM_FOR_RUN_BYTES = 256 * MIB
ROOM_FOR_OUTPUT_BYTES = 64 * MIB


@contextmanager
def run_folder() -> Generator[Path, None, None]:
    """A new folder under the user's cache. It goes when the block succeeds, and stays when it fails."""
    runs = cache_folder() / "runs"
    with _explained(runs, "set MAGNETON_CACHE to a folder you can write"):
        runs.mkdir(parents=True, exist_ok=True)
        prefix = f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}-"
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=runs))
    check_room(
        folder, ROOM_FOR_RUN_BYTES, hint="free some space, or set MAGNETON_CACHE to a folder with more"
    )
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def check_output(path: Path) -> None:
    """Whether ``path`` can be written when the measurement is over; raises what the user can put right."""
    folder = path.parent
    if not folder.is_dir():
        raise MagnetonError(f"no folder {folder} for {path.name}", hint=f"mkdir -p {folder}")
    if path.is_dir():
        raise MagnetonError(f"{path} is a folder", hint="name a file in it")
    with _explained(folder, "choose another place for the output"):
        if path.exists():
            path.open("ab").close()
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
    check_room(folder, ROOM_FOR_OUTPUT_BYTES, hint="free some space, or choose another place for the output")


def check_room(folder: Path, needed_bytes: int, *, hint: str) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise MagnetonError(
            f"{folder} has {free_bytes // MIB} MiB left; a recording may need {needed_bytes // MIB} MiB",
            hint=hint,
        )


@contextmanager
def _explained(folder: Path, hint: str) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        raise MagnetonError(f"cannot write into {folder}: {error.strerror}", hint=hint) from error
