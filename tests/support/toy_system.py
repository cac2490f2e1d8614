"""A system and its tracer without a framework: three numbers are added, or whatever an option asks for.

Used by name (``toy_system:ToySystem``) from workers that have this folder on their path. Options:
``in`` says where (load, trace, step, timeline, replay), ``how`` what goes wrong there.
"""

import fcntl
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from journal_rows import KERNEL, STACK, key, operator, value

from magneton.errors import MagnetonError
from magneton.profile.model import BlockReading, KeyId, ReplayReading
from magneton.record.blocks import run_block
from magneton.record.journal import Journal
from magneton.record.request import Filled
from magneton.record.sketching import sketch_array
from magneton.record.windows import Windows
from magneton.systems.running import Facts, Setup
from magneton.workload import Phase

SYSTEM = "toy_system:ToySystem"
SLEEPER = "import time; time.sleep(600)"


def user_error() -> None:
    raise MagnetonError("no such thing", hint="try another")


def lack_a_package() -> None:
    import_module("no_such_package")


def crash() -> None:
    raise KeyError("missing \x1b[31mred")


def leave() -> None:
    sys.exit(7)


def leave_at_once() -> None:
    os._exit(7)


def segfault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def get_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    time.sleep(600)


def allocate() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    np.ones(8 << 30, dtype=np.int8)


def need_all_memory() -> None:
    """Succeeds for one process at a time; held until it ends."""
    file = os.open(os.environ["TOY_MEMORY"], os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise MemoryError("taken by another process") from error


def allocate_on_device() -> None:
    raise RuntimeError("CUDA out of memory. Tried to allocate 3 GiB")


def print_rubbish() -> None:
    sys.stdout.write('{"magneton": 1, "kind": "Done", "body": {}}\n\x1b[2J\r50%\r100%\n')
    sys.stderr.write("from Python\n")
    os.write(1, b"from C \xff\x00 on 1\n")
    os.write(2, b"from C on 2\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)


def die_printing() -> None:
    print_rubbish()
    os._exit(3)


def spin() -> None:
    threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()


def spawn(*also: int) -> None:
    """A child in the group, one in a session of its own, one forked that keeps every descriptor."""
    child = subprocess.Popen([sys.executable, "-c", SLEEPER])
    daemon = subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=True)
    forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    forked.start()
    pids = [os.getpid(), child.pid, daemon.pid, forked.pid, *also]
    place = Path(os.environ["TOY_PIDS"])
    place.with_suffix(".part").write_text(json.dumps(pids))
    place.with_suffix(".part").rename(place)


def use_processes() -> None:
    """As a framework that pickles its own functions into fresh interpreters."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(print_rubbish)


def spawn_and_hang() -> None:
    spawn()
    hang()


def spawn_stranger_and_hang() -> None:
    """A daemon of a daemon, with nothing of ours in its environment and its parent gone."""
    start = "subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdout=subprocess.DEVNULL)"
    command = [sys.executable, "-c", f"import subprocess, sys; print({start}.pid)", SLEEPER]
    spawn(int(subprocess.check_output(command, env={}, start_new_session=True)))
    hang()


def spawn_and_die() -> None:
    spawn()
    os._exit(5)


MISHAPS: Mapping[str, Callable[[], None]] = {
    function.__name__: function
    for function in (
        user_error,
        lack_a_package,
        crash,
        leave,
        leave_at_once,
        segfault,
        get_killed,
        hang,
        allocate,
        allocate_on_device,
        need_all_memory,
        print_rubbish,
        die_printing,
        spin,
        spawn,
        use_processes,
        spawn_and_hang,
        spawn_stranger_and_hang,
        spawn_and_die,
    )
}


class ToySystem:
    framework = "toy_system:ToyTracer"

    def load(self, setup: Setup) -> Facts:
        self._options = setup.options
        self._phases = setup.workload.phases
        self._step_s = float(setup.options.get("step_s", "0.0002"))
        self.mishap("load")
        return Facts(
            versions={"toy": "1"},
            grad_mode="no_grad",
            mode="eager",
            dataflow_mode="eager",
            flags={"toy": "on"},
        )

    def phases(self) -> tuple[Phase, ...]:
        return self._phases

    def rewind(self, phase: Phase) -> None:
        del phase

    def step(self, phase: Phase) -> Mapping[str, Any]:
        self.mishap("step")
        until_s = time.perf_counter() + self._step_s
        while time.perf_counter() < until_s:
            pass
        return {f"{phase}.sum": np.arange(3.0)}

    def uncompiled(self) -> AbstractContextManager[object]:
        return nullcontext()

    def roots(self) -> Mapping[str, Any]:
        if "scope" in self._options:
            return {"scopes": {ToySystem.step.__qualname__: self._options["scope"]}}
        return {}

    def mishap(self, place: str) -> None:
        if self._options.get("in") == place:
            MISHAPS[self._options["how"]]()


class ToyTracer:
    """One operator and one value per phase."""

    def __init__(self, *, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._traced = 0

    def trace(self, system: ToySystem, phase: Phase, journal: Journal) -> None:
        system.mishap("trace")
        number = self._traced
        self._traced += 1
        if number == 0:
            journal.append(STACK)
            journal.append(key(0))
        journal.append(value(number))
        journal.append_sketch(value(number).value_id, sketch_array(np.arange(3.0) + number))
        journal.append(operator(number, value=number))
        for name, array in system.step(phase).items():
            journal.save_output(name, array)

    def timeline(
        self, system: ToySystem, phase: Phase, steps: int, round: int, windows: Windows, journal: Journal
    ) -> BlockReading:
        system.mishap("timeline")
        journal.append(KERNEL)
        for number in range(self._traced):
            journal.append_duration(operator(number).op_id, 1e-6 * (round + 1))
        return run_block(system, phase, steps, round, windows, pass_="timeline", clock_s=self._clock_s)  # pyright: ignore[reportArgumentType] - a framework of its own

    def replay(
        self,
        system: ToySystem,
        phase: Phase,
        round: int,
        windows: Windows,
        journal: Journal,
        budget_s: float,
        cache: Filled = "warm",
    ) -> None:
        del cache
        system.mishap("replay")
        reading = windows.single(lambda: None)
        journal.append(
            ReplayReading(
                key_id=KeyId(0), round=round, executions=1, duration_s=reading.duration_s, energy_j=budget_s
            )
        )
