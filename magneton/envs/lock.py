"""One lock per environment, which the kernel frees when the process that holds it ends in whatever way."""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from magneton.errors import MagnetonError


class InUse(MagnetonError):
    """Somebody else holds the lock, and waiting was not wanted."""


@contextmanager
def locked(
    path: Path, *, shared: bool, waiting: Callable[[], None] | None = None
) -> Generator[int, None, None]:
    """Hold the lock at ``path``, and give its descriptor.

    Where somebody else holds it, call ``waiting`` and wait; without ``waiting``, raise ``InUse``.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _hold(path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, waiting)
    except BlockingIOError:
        raise InUse(
            f"{path.stem} is in use by another magneton, or is being installed",
            hint="wait until that one is done, then try again",
        ) from None
    except OSError as error:
        raise MagnetonError(
            f"cannot lock {path}: {error.strerror}",
            hint="set MAGNETON_CACHE to a folder on a local disk that you may write to",
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _hold(path: Path, kind: int, waiting: Callable[[], None] | None) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _wait(descriptor, kind, waiting)
            if _is_there(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # whoever held it before removed the file: the lock is another file now


def _wait(descriptor: int, kind: int, waiting: Callable[[], None] | None) -> None:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        if waiting is None:
            raise
        waiting()
        fcntl.flock(descriptor, kind)


def _is_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
