"""Workers that do what no real one should: they speak the real protocol, then die in a way of their own."""

import os
import signal
from pathlib import Path
from time import monotonic, sleep

from scalify.worker.protocol import Request

_ROOT = Path(__file__).parents[2]
_HEAD = f"""
import os, signal, sys, time
sys.path.insert(0, {str(_ROOT)!r})
sys.path.insert(0, {str(_ROOT / "tests/support")!r})
from scalify.worker.protocol import *
from scalify_results import killed, proved, stuck
request = read_request(sys.stdin.buffer.readline())
def tell(event):
    os.write(1, write_event(event))
"""


def worker(folder: Path, body: str) -> Path:
    """A file to boot from. ``body`` has the ``request`` and can ``tell`` events."""
    path = folder / "worker.py"
    path.write_text(_HEAD + body)
    return path


def request(*, duration_s: float = 60.0, memory_bytes: int = 2 * 10**9, **sides: tuple[str, ...]) -> Request:
    """Of files that need not exist."""
    return Request(
        baseline=sides.get("baseline", ("one.scg",)),
        candidate=sides.get("candidate", ("four.scg",)),
        relations=None,
        partition=True,
        memo=True,
        duration_s=duration_s,
        memory_bytes=memory_bytes,
    )


def ended_within(pid: int, duration_s: float) -> bool:
    """Whether a process that somebody else has to wait for comes to its end; if not, it is ended here."""
    deadline_s = monotonic() + duration_s
    while monotonic() < deadline_s:
        if not _runs(pid):
            return True
        sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


def _runs(pid: int) -> bool:
    """Whether it does anything still: a dead child of a dead parent may be nobody's to bury."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
