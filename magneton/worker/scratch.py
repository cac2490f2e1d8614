"""What a worker keeps outside of the recording's folder: temporary files, sockets, shared memory.

Systems clean up behind themselves when they end in their own way; a worker is killed. So all of it lies in
one folder of the worker's, or carries its token in its name, and the parent removes it afterwards; where
the parent is killed, the worker's guard does (``watch``).
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import Self

from magneton.errors import MagnetonError
from magneton.worker.family import TOKEN

SHARED_MEMORY = Path("/dev/shm")
COMPILED = "TORCHINDUCTOR_CACHE_DIR"
FOLDER = "MAGNETON_SCRATCH"  # tells the guard; a user may have set TMPDIR for the worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """Short paths: the name of a socket may have about a hundred characters."""

    folder: Path
    token: str

    @classmethod
    def new(cls, token: str) -> Self:
        try:
            return cls(folder=Path(tempfile.mkdtemp(prefix="magneton-")), token=token)
        except OSError as error:
            raise MagnetonError(
                f"cannot write into {error.filename or 'any temporary folder'}: {error.strerror}",
                hint="make room there, or set TMPDIR to a folder with more",
            ) from error

    def environment(self) -> Mapping[str, str]:
        """What PyTorch has compiled stays where it is kept anyway: it serves the next run too."""
        kept = os.environ.get(COMPILED) or f"{tempfile.gettempdir()}/torchinductor_{_user()}"
        return {"TMPDIR": str(self.folder), FOLDER: str(self.folder), COMPILED: kept}

    def remove(self) -> None:
        """Once nothing of the worker runs any more. Again is harmless."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for place in SHARED_MEMORY.glob(f"*{self.token}*"):
            with suppress(OSError):
                place.unlink()


def remove_own_scratch() -> None:
    """That of the worker which this process belongs to, if it is one's."""
    folder, token = os.environ.get(FOLDER), os.environ.get(TOKEN)
    if folder and token:
        Scratch(folder=Path(folder), token=token).remove()


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return str(os.getuid())
