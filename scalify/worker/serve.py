"""The worker's end: take one request, do it, tell what happens."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from time import monotonic

from scalify.errors import ScalifyError
from scalify.report.result import RegionsDone, Result
from scalify.worker.limits import leave_with_parent, limit
from scalify.worker.protocol import (
    Event,
    Finished,
    OutOfMemory,
    Posed,
    Proving,
    Refused,
    Request,
    read_request,
    write_event,
)

TELL_EVERY_S = 0.1
OWN_SHARE = 0.9  # of the time limit: an engine that stops by itself can say more than one that is stopped
SEARCH_SHARE = 0.5  # of that at most: the search comes after the proof

Tell = Callable[[Event], None]


def main() -> None:
    """Serve the one request that comes over standard input; events go out over standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    events = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not land between two events
    commands = os.fdopen(0, "rb", closefd=False)
    line = commands.readline()
    if not line:
        return  # the parent was stopped before it could ask
    request = read_request(line)
    limit(request.memory_bytes, request.duration_s)
    leave_with_parent(0)
    serve(request, lambda event: _write_all(events, write_event(event)))
    os._exit(0)  # nothing is left to do, and taking large graphs apart would cost time


def serve(request: Request, tell: Tell) -> None:
    """Verify as requested. Errors of ours are bugs and end the process with their traceback."""
    try:
        tell(Finished(result=_result(request, tell)))
    except ScalifyError as error:
        tell(Refused(error=type(error).__name__, message=str(error), hint=error.hint))
    except MemoryError:
        tell(OutOfMemory())


def _result(request: Request, tell: Tell) -> Result:
    if request.replay is not None:
        from scalify.refute.replay import replay

        return replay(request.replay, request.baseline, request.candidate, request.ops)
    return _verified(request, tell)


def _verified(request: Request, tell: Tell) -> Result:
    # Imported under the limits and under the eyes of the parent.
    from scalify.prove.engine import Budget
    from scalify.prove.verify import Options
    from scalify.refute.budget import Search
    from scalify.report.summary import answered, unanswered
    from scalify.verification import Problem, verification

    files = request.baseline, request.candidate
    steps = _Steps(tell)

    def posed(problem: Problem) -> None:
        tell(Posed(unanswered=unanswered(problem, *files)))

    own_s = OWN_SHARE * request.duration_s
    search_s = min(request.search_s, SEARCH_SHARE * own_s)
    options = Options(
        partition=request.partition, memo=request.memo, budget=Budget(duration_s=own_s - search_s)
    )
    definitions: dict[str, list[str]] = {}
    for target, path in request.definitions:
        definitions.setdefault(target, []).append(path)
    done = verification(
        *files,
        relations=request.relations,
        definitions=definitions,
        ops=request.ops,
        options=options,
        search=Search(duration_s=search_s, memory_bytes=request.memory_bytes // 2) if search_s else None,
        posed=posed,
        progress=steps.reached,
    )
    return replace(answered(done, *files), progress=steps.last)


class _Steps:
    """Passes progress on, but not more often than anybody looks."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told_s = monotonic()
        self.last: RegionsDone | None = None

    def reached(self, done: int, total: int) -> None:
        self.last = RegionsDone(done=done, total=total)
        now_s = monotonic()
        if now_s - self._told_s >= TELL_EVERY_S:
            self._told_s = now_s
            self._tell(Proving(done=done, total=total))


def _write_all(fd: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
