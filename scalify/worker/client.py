"""The parent's end: start a worker, listen until it answers, dies or is out of time, and leave nothing of it.

In: a request. Out: a result, always: what a worker could not finish is Unknown, with what it had told by
then. Errors that the user can put right are raised here as they were there.
"""

import os
import resource
import selectors
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, process_time
from types import TracebackType
from typing import Self

from scalify.report.result import Cost, Result
from scalify.worker.ending import ending, out_of_memory, out_of_time
from scalify.worker.heard import Heard, Progress
from scalify.worker.protocol import Request, read_event, write_request

BOOT = Path(__file__).with_name("boot.py")
ENVIRONMENT = {
    # Every thread reserves address space, which is what is limited, and none of them would speed up a proof.
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
CHUNK_BYTES = 1 << 20
WORDS_BYTES = 1 << 14


class Prover:
    """One worker at work. Leaving the ``with`` block ends it, by whatever way. ``boot`` is what it runs."""

    def __init__(self, request: Request, *, boot: Path = BOOT) -> None:
        self._request = request
        self._start_s = monotonic()
        self._unread: list[bytes] = []
        self._words = b""
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(boot)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,  # Ctrl-C is for the parent, which ends the worker
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._process.pid

    def close(self) -> None:
        """End the worker, if it has not ended, and wait for the end. Again is harmless."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def result(self, progress: Progress | None = None) -> Result:
        """Ask, and wait for the answer."""
        heard = Heard(self._request, progress or _nobody)
        self._ask()
        result = heard.answer(self._end_of(heard))
        self.close()
        return replace(result, cost=self._cost())

    def _end_of(self, heard: Heard) -> str:
        """Listen to the end; how it ended, where it ended before its time."""
        try:
            self._listen(heard)
        except TimeoutError:
            return out_of_time(self._request)
        if heard.ran_out_of_memory:
            return out_of_memory(self._request)
        if heard.is_over:
            return ""
        status = self._process.wait()
        return ending(self._request, status, self._words.decode("utf-8", "replace"))

    def _cost(self) -> Cost:
        """What this process and all that it started and ended has taken."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Cost(
            cpu_s=process_time() + ended.ru_utime + ended.ru_stime, wall_s=monotonic() - self._start_s
        )

    def _ask(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once: listening finds out how
            self._process.stdin.write(write_request(self._request))

    def _listen(self, heard: Heard) -> None:
        """Take events until the last one, or until both of the worker's pipes are at their ends."""
        with selectors.DefaultSelector() as waiting:
            for pipe in (self._process.stdout, self._process.stderr):
                assert pipe is not None
                waiting.register(pipe, selectors.EVENT_READ)
            while waiting.get_map() and not heard.is_over:
                self._wait(waiting, heard)

    def _wait(self, waiting: selectors.BaseSelector, heard: Heard) -> None:
        left_s = self._start_s + self._request.duration_s - monotonic()
        if left_s <= 0:
            raise TimeoutError
        for key, _ in waiting.select(left_s):
            content = os.read(key.fd, CHUNK_BYTES)
            if not content:
                waiting.unregister(key.fileobj)
            elif key.fileobj is self._process.stderr:
                self._words = (self._words + content)[-WORDS_BYTES:]
            else:
                self._take(content, heard)

    def _take(self, content: bytes, heard: Heard) -> None:
        *lines, rest = content.split(b"\n")
        for line in lines:
            self._unread.append(line)
            heard.take(read_event(b"".join(self._unread)))
            self._unread.clear()
        self._unread.append(rest)


def _nobody(done: int, total: int) -> None:
    del done, total
