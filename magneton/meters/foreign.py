"""Whose processes are at work on a board: ours, or those of others that its counter adds to our energy.

Ours are this process, its process group and whatever it started. A worker leads a session of its own;
what started it is then magneton, and everything that magneton started is ours: the other side's worker too.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_DEEPEST = 64  # ancestors looked at
_SERVICE = "nvidia-"  # the driver's own services (nvidia-cuda-mps-server) hold a context and compute nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Kin:
    """Which processes are ours: these and their descendants, and those of the group."""

    roots: frozenset[int]
    group: int
    proc: Path = PROC

    def has(self, pid: int) -> bool:
        """Whether a process is one of ours; one that is not to be seen is not."""
        for _ in range(_DEEPEST):
            if pid in self.roots:
                return True
            status = _status(self.proc, pid)
            if status is None:
                return False
            if status.group == self.group:
                return True
            pid = status.parent
        return False

    def counts(self, pid: int) -> bool:
        """Whether a process may be one that computes."""
        status = _status(self.proc, pid)
        return status is None or not status.name.startswith(_SERVICE)


def own_kin() -> Kin:
    """Those of this process."""
    own = os.getpid()
    leads = os.getsid(0) == own and os.getppid() > 1
    return Kin(roots=frozenset({own, os.getppid()} if leads else {own}), group=os.getpgid(0))


def foreign_processes(pids: Collection[int], kin: Kin) -> int | None:
    """How many of the processes on a board are not ours.

    None where none is ours, although we are at work: numbers are then of another namespace, or hidden.
    """
    computing = [pid for pid in pids if kin.counts(pid)]
    ours = sum(kin.has(pid) for pid in computing)
    return len(computing) - ours if ours else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Status:
    name: str
    parent: int
    group: int


def _status(proc: Path, pid: int) -> _Status | None:
    """The name may hold anything, so what follows it is read behind the last parenthesis."""
    try:
        before, _, behind = (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")
        fields = behind.split()
        return _Status(name=before.partition("(")[2], parent=int(fields[1]), group=int(fields[2]))
    except (OSError, ValueError, IndexError):
        return None
