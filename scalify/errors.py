"""What the user can put right. Bugs stay ordinary exceptions and keep their tracebacks."""

from typing import ClassVar

EXIT_OK = 0
EXIT_USER_ERROR = 2
EXIT_REFUTED = 3
EXIT_UNKNOWN = 4
EXIT_INTERRUPTED = 130


class ScalifyError(Exception):
    """Something the user can put right: the message says what, the hint what to do next.

    The command line prints both without a traceback and leaves with ``exit_code``.
    """

    exit_code: ClassVar[int] = EXIT_USER_ERROR

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class InvalidGraph(ScalifyError):
    """A graph that is damaged, hostile, ill-typed or larger than this release reads."""


class UnsupportedFormat(ScalifyError):
    """A file that is not a graph, or one of a kind that could only be read by executing it."""


class InvalidRelations(ScalifyError):
    """Stated relations of inputs that do not fit the two graphs."""


class OutOfRange(ScalifyError):
    """A program that was run reads where its table has no row."""


class CaptureFailed(ScalifyError):
    """The user's own code could not be captured as a graph."""
