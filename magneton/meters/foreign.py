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
            parent, group = status
            if group == self.group:
                return True
            pid = parent
        return False


def own_kin() -> Kin:
    """Those of this process."""
    own = os.getpid()
    leads = os.getsid(0) == own and os.getppid() > 1
    return Kin(roots=frozenset({own, os.getppid()} if leads else {own}), group=os.getpgid(0))


def foreign_processes(pids: Collection[int], kin: Kin) -> int | None:
    """How many of the processes on a board are not ours.

    None where none is ours, although we are at work: numbers are then of another namespace, or hidden.
    """
    ours = sum(kin.has(pid) for pid in pids)
    return len(pids) - ours if ours else None


def _status(proc: Path, pid: int) -> tuple[int, int] | None:
    """Parent and process group; the name before them may hold anything, so they are read behind it."""
    try:
        fields = (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[1]), int(fields[2])
    except (OSError, ValueError, IndexError):
        return None
