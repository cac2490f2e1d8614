"""What the user can put right. Bugs stay ordinary exceptions and keep their tracebacks."""

from pathlib import Path
from typing import ClassVar

EXIT_OK = 0
EXIT_USER_ERROR = 2
EXIT_FINDING = 3
EXIT_UNRESOLVED = 4
EXIT_INTERRUPTED = 130


class MagnetonError(Exception):
    """Something the user can put right: the message says what, the hint what to do next.

    The command line prints both without a traceback and leaves with ``exit_code``.
    """

    exit_code: ClassVar[int] = EXIT_USER_ERROR

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class InvalidProfile(MagnetonError):
    """A profile file that is damaged, hostile, or of a version this release cannot read."""


class Incomparable(MagnetonError):
    """Two profiles that must not be compared: another model, device, meter or workload."""

    exit_code: ClassVar[int] = EXIT_UNRESOLVED


class WorkerFailed(MagnetonError):
    """A system's own process crashed, hung, was killed or ran out of memory.

    The hint carries the end of that process's log and where the whole log lies. ``journals`` are the
    folders of sides whose trace was complete: ``magneton.record.assemble`` can still read them.
    """

    journals: tuple[Path, ...] = ()


class WorkerOutOfMemory(WorkerFailed):
    """It ran out of memory, or was killed as the kernel kills what takes too much.

    Two systems that do not fit at once may still fit one after the other.
    """


class Interrupted(MagnetonError):
    """The user stopped a recording. No process is left; the hint says where what was recorded lies.

    ``journals`` as in ``WorkerFailed``.
    """

    journals: tuple[Path, ...] = ()
    exit_code: ClassVar[int] = EXIT_INTERRUPTED
