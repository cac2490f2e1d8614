"""The worker's end of the pipe, out of reach of whatever a framework prints.

It is moved away from descriptors 0 and 1 before anything else runs: output, from Python or from C, then
lands in the log (descriptor 2, opened by the parent) and never between two messages.
"""

import faulthandler
import os
import resource
import signal
from typing import BinaryIO

SHOW_STACKS = signal.SIGUSR2  # writes every thread's stack into the log; sent to a worker that hangs


def private_channel() -> tuple[BinaryIO, BinaryIO]:
    """Duplicates of descriptors 0 and 1 that no other program inherits; 0 becomes empty, 1 the log."""
    commands, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(commands, "rb"), os.fdopen(replies, "wb", buffering=0)


def leave_words_behind() -> None:
    """A crash, or a parent that loses patience, leaves stacks in the log, and no gigabytes of core."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(file=2, all_threads=True)
    faulthandler.register(SHOW_STACKS, file=2, all_threads=True)
