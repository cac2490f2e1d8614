"""What the worker may not outgrow, and whom it may not outlive."""

import os
import resource
import signal
import sys
from _thread import stack_size, start_new_thread

GRACE_S = 5  # of processor time beyond the limit: the parent stops by the clock, this is for its absence
WATCH_STACK_BYTES = 1 << 16


def limit(memory_bytes: int, duration_s: float) -> None:
    """Bound this process: address space, processor time, no core file."""
    _lower(resource.RLIMIT_CORE, 0)
    if sys.platform != "darwin":  # which does not keep this limit, and may refuse it
        _lower(resource.RLIMIT_AS, memory_bytes)
    # At the lower bound comes a signal that says why, at the upper one the end.
    _lower(resource.RLIMIT_CPU, int(duration_s) + GRACE_S, int(duration_s) + 2 * GRACE_S)


def _lower(kind: int, low: int, high: int | None = None) -> None:
    bounds = low, low if high is None else high
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        bounds = min(bounds[0], hard), min(bounds[1], hard)
    resource.setrlimit(kind, bounds)


def leave_with_parent(commands_fd: int) -> None:
    """End this process when the parent's end of the pipe closes, in whatever way the parent went.

    The engine lets other threads run while it works, so a thread can watch.
    """
    before = stack_size(WATCH_STACK_BYTES)
    start_new_thread(_await_hangup, (commands_fd,))
    stack_size(before)


def _await_hangup(fd: int) -> None:
    while os.read(fd, 4096):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
