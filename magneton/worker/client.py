"""The parent's end: start a worker, ask it things with a deadline each, and leave nothing of it behind.

Whatever goes wrong becomes one ``WorkerFailed`` with the end of the worker's log and the log's place.
Leaving the ``with`` block, by whatever way, ends the worker's whole family, and what it kept in temporary
files goes with it.
"""

import os
import selectors
import subprocess
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from magneton.errors import MagnetonError, WorkerFailed
from magneton.worker import boot
from magneton.worker.channel import SHOW_STACKS
from magneton.worker.failure import ending, lost, reported
from magneton.worker.family import TOKEN, await_end, kill_family
from magneton.worker.protocol import (
    MAX_MESSAGE_BYTES,
    Command,
    Done,
    Failed,
    Measured,
    Paused,
    Prepared,
    ProtocolError,
    Release,
    read_reply,
    write_message,
)
from magneton.worker.scratch import Scratch

STACKS_SHOWN_WITHIN_S = 0.3
LOOK_AGAIN_S = 0.25  # a process forked by the system may hold the pipe open after the worker's death
LEAVES_WITHIN_S = 5.0

R = TypeVar("R", Prepared, Measured, Paused, Done)


class WorkerClient:
    """One worker. ``name`` is what errors call it; ``log`` receives all that it prints."""

    def __init__(self, *, name: str, python: Path, log: Path, environment: Mapping[str, str]) -> None:
        self._name = name
        self._log = log
        self._token = uuid.uuid4().hex
        self._unread = b""
        self._scratch = Scratch.new(self._token)
        self._process = self._start(python, environment)
        self._replies = self._process.stdout
        self._commands = self._process.stdin

    def _start(self, python: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        try:
            with self._log.open("ab") as log:
                return subprocess.Popen(
                    [python, boot.__file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    env={
                        **os.environ,
                        **self._scratch.environment(),
                        "PYTHONUNBUFFERED": "1",
                        **environment,
                        TOKEN: self._token,
                    },
                    start_new_session=True,
                )
        except OSError as error:
            self._scratch.remove()
            raise MagnetonError(
                f"cannot start {python} for {self._name}: {error.strerror}",
                hint="--python wants the interpreter of the system's own environment",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: Command, expected: type[R], *, timeout_s: float) -> R:
        """The worker's answer to ``command``."""
        deadline_s = time.monotonic() + timeout_s
        try:
            self._send(write_message(command))
            line = self._line(deadline_s)
        except TimeoutError:
            raise self._hung(command.doing, timeout_s) from None
        except (EOFError, BrokenPipeError):
            raise self._died(command.doing) from None
        return self._expected(line, command.doing, expected)

    def release(self, *, timeout_s: float) -> None:
        """Let the worker leave in its own way, for a while."""
        self.ask(Release(), Done, timeout_s=timeout_s)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVES_WITHIN_S)

    def close(self) -> None:
        """End the worker's family, if any of it is left, and wait for the end. Again is harmless."""
        if self._commands is None or self._commands.closed:
            return
        kill_family(self._process.pid, self._token)
        self._process.wait()
        await_end(self._process.pid)
        self._scratch.remove()
        for pipe in (self._commands, self._replies):
            if pipe is not None:
                pipe.close()

    def _send(self, message: bytes) -> None:
        assert self._commands is not None
        self._commands.write(message)

    def _line(self, deadline_s: float) -> bytes:
        assert self._replies is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._replies, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                self._wait(waiting, deadline_s)
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _wait(self, waiting: selectors.BaseSelector, deadline_s: float) -> None:
        """Read more, or find out that no more will come."""
        assert self._replies is not None
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if not waiting.select(min(left_s, LOOK_AGAIN_S)):
            if self._process.poll() is not None:
                raise EOFError
            return
        more = os.read(self._replies.fileno(), 1 << 16)
        self._unread += more
        if not more or len(self._unread) > MAX_MESSAGE_BYTES:
            raise EOFError

    def _expected(self, line: bytes, doing: str, expected: type[R]) -> R:
        try:
            reply = read_reply(line)
        except ProtocolError as error:
            raise lost(self._name, f"gave an unreadable answer while {doing}: {error}", self._log) from error
        if isinstance(reply, Failed):
            raise reported(self._name, reply, doing, self._log)
        if not isinstance(reply, expected):
            raise lost(self._name, f"answered {type(reply).__name__} while {doing}", self._log)
        return reply

    def _hung(self, doing: str, timeout_s: float) -> WorkerFailed:
        """Ask for the stacks of its threads first: the log then says where it hangs."""
        with suppress(ProcessLookupError):
            self._process.send_signal(SHOW_STACKS)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STACKS_SHOWN_WITHIN_S)
        self.close()
        return lost(self._name, f"did not answer within {timeout_s:.3g} s while {doing}", self._log)

    def _died(self, doing: str) -> WorkerFailed:
        try:
            status = self._process.wait(LEAVES_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.close()
            return lost(self._name, f"stopped answering while {doing}", self._log)
        self.close()
        what, memory = ending(status)
        return lost(self._name, f"{what} while {doing}", self._log, memory=memory)
