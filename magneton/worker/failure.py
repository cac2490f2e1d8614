"""What went wrong with a worker, as one error: what happened, during what, the log's end and its place."""

import signal
from pathlib import Path

from magneton.errors import MagnetonError, WorkerFailed, WorkerOutOfMemory
from magneton.worker.log import escaped, indented, log_tail
from magneton.worker.protocol import Failed

MESSAGE_CHARACTERS = 1000


def lost(name: str, what: str, log: Path, *, memory: bool = False) -> WorkerFailed:
    """A worker that can say nothing more itself: its log has to."""
    kind = WorkerOutOfMemory if memory else WorkerFailed
    return kind(f"{name} {what}", hint=_hint(log_tail(log), log))


def reported(name: str, reply: Failed, doing: str, log: Path) -> MagnetonError:
    """A failure that the worker noticed and described."""
    message = escaped(reply.message)[:MESSAGE_CHARACTERS]
    if reply.kind == "user":
        return MagnetonError(message, hint=reply.hint)
    hint = _hint(indented(reply.traceback), log)
    if reply.kind == "memory":
        return WorkerOutOfMemory(f"{name} ran out of memory while {doing}: {message}", hint=hint)
    return WorkerFailed(f"{name} failed while {doing}: {message}", hint=hint)


def ending(status: int) -> tuple[str, bool]:
    """How a process ended, from its status as ``subprocess`` gives it; and whether memory is suspected."""
    if status == -signal.SIGKILL:
        return "was killed (possibly out of memory)", True
    if status < 0:
        return f"crashed with signal {-status} ({_signal_name(-status)})", False
    return f"exited with status {status}", False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"


def _hint(tail: str, log: Path) -> str:
    return f"the end of its log:\n{tail}\nthe whole log: {log}" if tail else f"its log is empty: {log}"
