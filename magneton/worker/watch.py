"""A worker must not outlive its parent, however the parent goes and whatever the worker is doing.

Three things see to it: a tiny process forked before anything heavy is imported, which waits for the
parent's end of the pipe to close and then ends the whole family (a thread could not: a system that
hangs inside a C call may hold the interpreter's lock); on Linux the kernel's own signal to the worker,
in case that process is killed too; and the command loop, which ends at the end of its input.
"""

import ctypes
import os
import select
import signal
import sys

from magneton.worker.family import TOKEN, kill_family
from magneton.worker.scratch import remove_own_scratch

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def watch_parent(commands_fd: int, replies_fd: int) -> None:
    """Call before any thread exists. ``commands_fd`` reads what the parent writes."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        adopt_orphans()
    if os.fork() == 0:
        try:
            os.close(replies_fd)  # the parent recognises the worker's death by this end closing
            _await_hangup(commands_fd)
            remove_own_scratch()
            end_family()
        finally:
            os._exit(1)  # whatever happens here, this process must not go on to become a second worker


def adopt_orphans() -> None:
    """Stay the ancestor of what daemonises: an orphan among our descendants becomes our child, not init's."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_family() -> None:
    """End this process with all that belongs to it."""
    kill_family(os.getpgrp(), os.environ.get(TOKEN, ""))


def _await_hangup(fd: int) -> None:
    """Wait without reading: the bytes are the worker's."""
    waiting = select.poll()
    waiting.register(fd, 0)
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in waiting.poll()):
        pass
