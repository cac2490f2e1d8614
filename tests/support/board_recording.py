"""Recordings over simulated boards in real time: through ``record_pair`` and through the command line.

``BoardRoom`` is a folder with boards in it. What is started with its environment finds them where the driver
would be, a system called ``board`` among magneton's own, and a cache of its own.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any

import simulated_faults
from board_system import SYSTEM
from commands import Left
from simulated_board import Board, Fault, Host, Simulation, build_library, environment
from toy_recording import await_true

from magneton.configs import configs_folder
from magneton.record.plan import RecordPlan
from magneton.record.request import RecordRequest
from magneton.workload import Workload

WORKLOAD = Workload(phases=("prefill",))
# Its windows take two seconds all the same: the sensor's period asks for them.
BRIEF = RecordPlan(rounds=3, replay_rounds=1, warm_up_s=0.4, rest_s=2.0, settle_s=0.3)
_DESCRIPTION = """
description = "keeps a simulated board at work"
package = "numpy"
frameworks = ["board"]
phases = ["prefill", "decode"]

[variants.cpu]
requirements = ["numpy>=2.0"]

[variants.cuda]
requirements = ["numpy>=2.0"]
"""
_OPTIONS = ("attend_w", "attend_ms", "project_w", "project_ms", "wait")
_OPTION = '\n[options.{}]\ntype = "text"\nhelp = "see tests/support/board_system.py"\ndefault = "as there"\n'


class BoardRoom:
    """Boards in ``folder``, which several processes see at once."""

    def __init__(
        self,
        folder: Path,
        *boards: Board,
        faults: Iterable[Fault] = (),
    ) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.cache.mkdir(parents=True)
        found = environment(
            build_library(), boards, faults=faults, real_time=True, state_file=folder / "boards"
        )
        offered = _offer(folder / "offered")
        self.environment = found | {
            "PYTHONPATH": os.pathsep.join([str(offered), found["PYTHONPATH"]]),
            "MAGNETON_CACHE": str(self.cache),
            "COLUMNS": "80",
            "BOARD_TRUTH": str(folder / "truth"),
            "BOARD_LOADED": str(folder / "loaded"),
        }
        self._host = Host(self.environment)

    def __enter__(self) -> "BoardRoom":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._host.close()

    def request(self, system: str = SYSTEM, **options: str) -> RecordRequest:
        return RecordRequest(
            system=system,
            options=options,
            model="board",
            workload=WORKLOAD,
            meter="nvml",
            device="cuda:0",
            environment=self.environment,
        )

    def inject(self, *faults: Fault, after_s: float = 0.0) -> None:
        """From so many seconds from now on."""
        self._host.call(apply, faults=[_written(fault) for fault in faults], after_s=after_s)

    def clear(self) -> None:
        self._host.call(forget)

    def run(self, *arguments: str | Path, timeout_s: float = 300.0) -> Left:
        """The real command line, to its end."""
        return self.start(*arguments).left(timeout_s)

    def start(self, *arguments: str | Path, variables: Mapping[str, str] | None = None) -> "Running":
        return Running(self, [str(each) for each in arguments], self.environment | dict(variables or {}))

    def measure(
        self,
        command: str,
        *arguments: str | Path,
        device: str = "cuda:0",
        meter: str = "nvml",
        variables: Mapping[str, str] | None = None,
    ) -> "Running":
        """``magneton record`` or ``magneton compare`` of the system ``board``."""
        asked = ["--model", "llama", "--scale", "tiny", "--phases", "prefill", "--quiet"]
        return self.start(
            command, *arguments, *asked, "--meter", meter, "--device", device, variables=variables
        )

    def journals(self) -> tuple[Path, ...]:
        return tuple(sorted(self.cache.glob("runs/*/*")))

    def blocks(self) -> int:
        """Rows of blocks that were written so far, on all sides."""
        tables = [journal / "blocks.jsonl" for journal in self.journals()]
        return sum(len(table.read_bytes().splitlines()) for table in tables if table.exists())


class Running:
    """A command that was started."""

    def __init__(self, room: BoardRoom, arguments: list[str], variables: Mapping[str, str]) -> None:
        self._room = room
        self._process = subprocess.Popen(
            [sys.executable, "-m", "magneton", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=room.folder,
            env=variables,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def after_blocks(self, blocks: int, *, within_s: float = 120.0) -> "Running":
        """Not before so many blocks have been written."""
        assert await_true(
            lambda: self._room.blocks() >= blocks or self._process.poll() is not None, within_s=within_s
        )
        assert self._process.poll() is None, self._process.communicate()
        return self

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def left(self, timeout_s: float = 300.0) -> Left:
        try:
            stdout, stderr = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            stdout, stderr = self._process.communicate()
            raise AssertionError(f"still running after {timeout_s:g} s\n{stdout}\n{stderr}") from None
        return Left(code=self._process.returncode, stdout=stdout, stderr=stderr)


def apply(faults: list[dict[str, Any]], after_s: float) -> None:
    """In a process that has the library: these go wrong soon."""
    simulation = Simulation.joined()
    for fault in faults:
        kind = getattr(simulated_faults, fault["kind"])
        simulation.fault(kind(**fault["fields"] | {"at_s": simulation.now_s() + after_s}))


def forget() -> None:
    Simulation.joined().clear_faults()


def _written(fault: Fault) -> dict[str, Any]:
    return {
        "kind": type(fault).__name__,
        "fields": {each.name: getattr(fault, each.name) for each in fields(fault)},
    }


def _offer(folder: Path) -> Path:
    """A folder that makes ``board`` a system when it is first on the path: magneton itself with one more
    description, and the entry point beside it."""
    (folder / "configs").mkdir(parents=True)
    package = Path(sys.modules["magneton"].__file__ or "").parent
    (folder / "magneton").symlink_to(package, target_is_directory=True)
    for kind in configs_folder().iterdir():
        if kind.name != "systems":
            (folder / "configs" / kind.name).symlink_to(kind)
    systems = folder / "configs" / "systems"
    systems.mkdir()
    for description in (configs_folder() / "systems").glob("*.toml"):
        (systems / description.name).symlink_to(description)
    options = "".join(_OPTION.format(name) for name in _OPTIONS)
    (systems / "board.toml").write_text(_DESCRIPTION + options)
    info = folder / "board_system-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: board-system\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[magneton.systems]\nboard = {SYSTEM}\n")
    return folder
