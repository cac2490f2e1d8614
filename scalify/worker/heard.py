"""What a worker has told so far, and the answer that follows from it."""

from collections.abc import Callable
from dataclasses import replace

from scalify import __version__, errors
from scalify.errors import ScalifyError
from scalify.report.result import File, Program, RegionsDone, Result
from scalify.verdict import Reason
from scalify.worker.protocol import Event, Finished, OutOfMemory, Posed, Proving, Refused, Request

Progress = Callable[[int, int], None]


class Heard:
    """Takes events as they come. ``is_over`` once nothing more is to be expected."""

    def __init__(self, request: Request, progress: Progress) -> None:
        self._progress = progress
        self._unanswered = _nothing_loaded(request)
        self._done: RegionsDone | None = None
        self._answer: Result | ScalifyError | None = None
        self.ran_out_of_memory = False

    @property
    def is_over(self) -> bool:
        return self._answer is not None or self.ran_out_of_memory

    def take(self, event: Event) -> None:
        match event:
            case Posed(unanswered=unanswered):
                self._unanswered = unanswered
            case Proving(done=done, total=total):
                self._done = RegionsDone(done=done, total=total)
                self._progress(done, total)
            case Finished(result=result):
                self._answer = result
            case Refused():
                self._answer = _error(event)
            case OutOfMemory():
                self.ran_out_of_memory = True

    def answer(self, ending: str) -> Result:
        """The worker's own answer; without one, Unknown, because of how it ended."""
        if isinstance(self._answer, ScalifyError):
            raise self._answer
        if self._answer is not None:
            return self._answer
        return replace(self._unanswered, reason=Reason.KILLED, detail=ending, progress=self._done)


def _error(refused: Refused) -> ScalifyError:
    kind = getattr(errors, refused.error, ScalifyError)
    known = isinstance(kind, type) and issubclass(kind, ScalifyError)
    return (kind if known else ScalifyError)(refused.message, hint=refused.hint)


def _nothing_loaded(request: Request) -> Result:
    return Result(
        scalify=__version__,
        verdict="unknown",
        reason=Reason.KILLED,
        baseline=_unread(request.baseline),
        candidate=_unread(request.candidate),
    )


def _unread(paths: tuple[str, ...]) -> Program:
    return Program(files=tuple(File(path=path) for path in paths))
