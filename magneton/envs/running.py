"""A process of the installer: its words go to a log, and none of its family is left when it is over.

Standard error goes into the log directly; standard output passes through here, so that whoever watches
learns what is being done.
"""

import os
import selectors
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from magneton.envs import child
from magneton.worker.family import TOKEN, await_end, kill_family

LOOK_AGAIN_S = 0.25
READ_BYTES = 1 << 16
WRAPPED = 256  # pip that runs pip in another interpreter passes on its status, and -9 arrives as 247
HIGHEST_STATUS = WRAPPED - 65

# What would make an installation land elsewhere, or take packages from elsewhere for installed ones.
DIVERTING = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON")


def run_module(
    python: Path,
    arguments: Sequence[str],
    *,
    log: Path,
    temporary: Path,
    lock: int,
    heard: Callable[[str], None],
    looked: Callable[[], None],
) -> int:
    """``python -m ARGUMENTS``; the status it ended with, negative for a signal.

    ``heard`` gets each line of its standard output, ``looked`` is called now and then. The process keeps the
    lock for as long as it lives: nobody else may start on the folder while it still writes there.
    """
    token = uuid.uuid4().hex
    with log.open("ab", buffering=0) as words:
        process = subprocess.Popen(
            [python, child.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            bufsize=0,
            env=_environment(temporary, token),
            pass_fds=(lock,),
            start_new_session=True,
        )
        try:
            _listen(process, words.write, heard, looked)
        finally:
            kill_family(process.pid, token)
            status = process.wait()
            await_end(process.pid)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
    return status - WRAPPED if status > HIGHEST_STATUS else status


def _environment(temporary: Path, token: str) -> Mapping[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in DIVERTING}
    return {
        **kept,
        TOKEN: token,
        "TMPDIR": str(temporary),  # so that nothing is left elsewhere when it is killed
        "PIP_NO_INPUT": "1",
        "PIP_USER": "0",  # also where a file of pip's says otherwise
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _listen(
    process: subprocess.Popen[bytes],
    write: Callable[[bytes], object],
    heard: Callable[[str], None],
    looked: Callable[[], None],
) -> None:
    """Until the process has ended, and nothing that it said is unread."""
    assert process.stdout is not None
    unread = b""
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            if not waiting.select(0 if ended else LOOK_AGAIN_S):
                looked()
                if ended:
                    return
                continue
            more = os.read(process.stdout.fileno(), READ_BYTES)
            if not more:
                process.wait()
                return
            write(more)
            *lines, unread = (unread + more).split(b"\n")
            looked()
            for line in lines:
                heard(line.decode("utf-8", errors="replace"))
