"""A worker and all that descends from it, as one thing that can be ended or watched.

A worker leads its own process group. What leaves the group (a framework's daemon that starts a session
of its own) still carries the worker's token in its environment, or, started with an environment of its
own, still descends from the worker: Linux hands the orphans among its descendants to it
(``watch.adopt_orphans``). Only such a stranger whose worker died first is missed.
"""

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

TOKEN = "MAGNETON_WORKER"
PROC = Path("/proc")
SWEEPS = 5  # a family that forks faster than this is ended by its group alone
GONE_WITHIN_S = 0.5  # where nothing reaps orphans, the dead stay visible: do not wait for them for ever


def kill_family(group: int, token: str) -> None:
    """End ``group``, its leader's descendants, the carriers of ``token``; the caller last if one of them."""
    for _ in range(SWEEPS):
        found = {*descendants(group), *carriers(token)} - {os.getpid(), group}
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            break
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def await_end(group: int) -> None:
    """Return when the kernel knows ``group`` no more, or soon after."""
    deadline_s = time.monotonic() + GONE_WITHIN_S
    with suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < deadline_s:
            os.killpg(group, 0)
            time.sleep(0.005)


def descendants(ancestor: int) -> Iterator[int]:
    """Children of ``ancestor``, theirs and so on that still run; none where the system has no /proc."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid in _pids():
        with suppress(OSError):
            state, parent, *_ = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            if state != "Z":
                children[int(parent)].append(pid)
    found = [ancestor]
    for pid in found:
        found.extend(children[pid])
        yield from children[pid]


def carriers(token: str) -> Iterator[int]:
    """Running processes whose environment holds ``token``; none where the system has no /proc."""
    if not token:
        return
    wanted = f"{TOKEN}={token}".encode()
    for pid in _pids():
        with suppress(OSError):
            if wanted in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                yield pid


def busy_cores(window_s: float) -> float:
    """CPU-seconds per second that this process and the rest of its group use while this thread sleeps."""
    others = tuple(pid for pid in _pids() if pid != os.getpid() and _group_of(pid) == os.getpgrp())
    others_ns = sum(_cpu_ns(pid) for pid in others)
    began_ns, own_ns = time.monotonic_ns(), time.process_time_ns()
    time.sleep(window_s)
    own_ns = time.process_time_ns() - own_ns
    elapsed_ns = time.monotonic_ns() - began_ns
    others_ns = sum(_cpu_ns(pid) for pid in others) - others_ns
    return (own_ns + max(others_ns, 0)) / elapsed_ns


def _pids() -> tuple[int, ...]:
    with suppress(OSError):
        return tuple(int(place.name) for place in PROC.iterdir() if place.name.isdigit())
    return ()


def _group_of(pid: int) -> int | None:
    with suppress(OSError):
        return os.getpgid(pid)
    return None


def _cpu_ns(pid: int) -> int:
    """Time on a core of all threads of ``pid``. Nanoseconds; ``/proc/PID/stat`` counts in hundredths."""
    total_ns = 0
    for schedstat in (PROC / str(pid) / "task").glob("*/schedstat"):
        with suppress(OSError):
            total_ns += int(schedstat.read_text().split()[0])
    return total_ns
