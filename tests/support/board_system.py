"""A system whose steps keep a simulated board at work in real time, and its tracer; no framework is needed.

Used by name (``board_system:BoardSystem``) in processes that have the simulated NVML and this folder on their
path. A step is two operators, one after the other:

    x --attend--> hidden --project--> logits

Options, all text: ``attend_w``, ``attend_ms``, ``project_w`` and ``project_ms`` are what each draws and for
how long; ``wait`` is how the host waits meanwhile: "sleep", or "spin" as one does that asks a stream over and
over whether it is done (pytorch/pytorch#28224). The file that the variable ``BOARD_TRUTH`` names gets a line
for each step: when it ended and what the board had truly spent by then. The one that ``BOARD_LOADED`` names
is there once a system has been loaded.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from simulated_board import Simulation, Work

from magneton.profile.model import (
    BlockReading,
    Frame,
    Kernel,
    KeyId,
    Operator,
    OpId,
    ReplayKey,
    ReplayReading,
    Stack,
    StackId,
    Value,
    ValueId,
)
from magneton.record.blocks import run_block
from magneton.record.journal import Journal
from magneton.record.request import Filled
from magneton.record.sketching import sketch_array
from magneton.record.windows import LONGER, TRIES, Windows, per_piece
from magneton.systems.running import Facts, Setup
from magneton.workload import Phase

SYSTEM = "board_system:BoardSystem"
OPERATORS = ("attend", "project")
VALUES = ("x", "hidden", "logits")
DEFAULTS = {"attend_w": "300", "attend_ms": "10", "project_w": "200", "project_ms": "10", "wait": "sleep"}
TIMELINE_STEPS = 8  # enough not to be flanked by rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What the board had truly spent when a step ended, at ``time_s`` of the recording."""

    time_s: float
    energy_j: float


def read_truth(path: Path) -> tuple[Spent, ...]:
    """All steps of all processes of one recording, in the order of time; none under another tracer than ours,
    which does not tell when it began."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    told_s = {row["began_s"] for row in rows if "began_s" in row}
    if not told_s:
        return ()
    (began_s,) = told_s
    steps = sorted((row["end_s"], row["energy_j"]) for row in rows if "end_s" in row)
    return tuple(Spent(time_s=end_s - began_s, energy_j=energy_j) for end_s, energy_j in steps)


def _write_truth(**row: float) -> None:
    if path := os.environ.get("BOARD_TRUTH"):
        with Path(path).open("a") as file:
            file.write(json.dumps(row) + "\n")


def values_of(phase: Phase) -> Mapping[str, np.ndarray]:
    """The same on every side, and others in every phase."""
    generator = np.random.default_rng(len(phase))
    return {name: generator.standard_normal(64) for name in VALUES}


class BoardSystem:
    """Implements ``magneton.systems.running.RunningSystem``, for a framework of its own."""

    framework = "board_system:BoardTracer"

    def load(self, setup: Setup) -> Facts:
        if marker := os.environ.get("BOARD_LOADED"):
            Path(marker).touch()
        self._phases = setup.workload.phases
        options = {**DEFAULTS, **setup.options}
        self._work = {
            name: Work(busy_w=float(options[f"{name}_w"]), busy_s=float(options[f"{name}_ms"]) / 1e3)
            for name in OPERATORS
        }
        self._spins = options["wait"] == "spin"
        self._simulation = Simulation.joined()
        return Facts(
            versions={"board": "1"}, grad_mode="no_grad", mode="eager", dataflow_mode="eager", flags={}
        )

    def phases(self) -> tuple[Phase, ...]:
        return self._phases

    def rewind(self, phase: Phase) -> None:
        del phase

    def step(self, phase: Phase) -> Mapping[str, Any]:
        for name in OPERATORS:
            self.run(name)
        self.note()
        return {f"{phase}.logits": values_of(phase)["logits"]}

    def note(self) -> None:
        """A step has ended."""
        _write_truth(end_s=time.monotonic(), energy_j=self._simulation.true_energy_j(0))

    def run(self, name: str) -> None:
        """One operator, from its launch until the board has done it."""
        work = self._work[name]
        until_s = self._simulation.now_s() + work.busy_s
        self._simulation.launch(0, work)
        while self._spins and self._simulation.now_s() < until_s:
            pass
        self._simulation.synchronize(0)

    def busy_s(self, name: str) -> float:
        return self._work[name].busy_s

    def uncompiled(self) -> AbstractContextManager[object]:
        return nullcontext()

    def roots(self) -> Mapping[str, Any]:
        return {}


class BoardTracer:
    """Implements ``magneton.record.tracer.Tracer``: an id of a value, operator or key counts over phases."""

    def __init__(self, *, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        _write_truth(began_s=round(time.monotonic() - clock_s(), 3))
        self._first: dict[Phase, int] = {}  # operator of a phase

    def trace(self, system: BoardSystem, phase: Phase, journal: Journal) -> None:
        if not self._first:
            for number, name in enumerate(OPERATORS):
                frame = Frame(file="board_system.py", line=number + 1, function=name, code=f"{name}()")
                journal.append(Stack(frames=(frame,)))
        first = self._first[phase] = len(self._first) * len(OPERATORS)
        base = len(self._first) * len(VALUES) - len(VALUES)
        for number, (name, array) in enumerate(values_of(phase).items()):
            value_id = ValueId(base + number)
            journal.append(_value(value_id, name, None if number == 0 else OpId(first + number - 1)))
            journal.append_sketch(value_id, sketch_array(array))
        for number, name in enumerate(OPERATORS):
            journal.append(ReplayKey(key_id=KeyId(first + number), skipped=None))
            journal.append(_operator(first + number, phase, name, base + number, StackId(number)))
        for name, array in system.step(phase).items():
            journal.save_output(name, array)

    def timeline(
        self, system: BoardSystem, phase: Phase, steps: int, round: int, windows: Windows, journal: Journal
    ) -> BlockReading:
        for op_id, name in self._operators(phase):
            duration_s = system.busy_s(name)
            journal.append(
                Kernel(
                    phase=phase,
                    op_id=op_id,
                    name=f"{name}_kernel",
                    device="cuda:0",
                    start_s=0.0,
                    duration_s=duration_s,
                )
            )
            journal.append_duration(op_id, duration_s)
        few = min(steps, TIMELINE_STEPS)
        return run_block(system, phase, few, round, windows, pass_="timeline", clock_s=self._clock_s)  # pyright: ignore[reportArgumentType] - a framework of its own

    def replay(
        self,
        system: BoardSystem,
        phase: Phase,
        round: int,
        windows: Windows,
        journal: Journal,
        budget_s: float,
        cache: Filled = "warm",
    ) -> None:
        del budget_s, cache
        for op_id, name in self._operators(phase):
            pieces = max(1, math.ceil(LONGER * windows.shortest_window_s / system.busy_s(name)))
            whole = windows.over(
                lambda name=name: system.run(name),
                pieces,
                kind="replay",
                phase=phase,
                piece_s=system.busy_s(name),
                tries=TRIES,
            )
            one = per_piece(whole, pieces)
            journal.append(
                ReplayReading(
                    key_id=KeyId(op_id),
                    round=round,
                    executions=pieces,
                    duration_s=one.duration_s,
                    energy_j=one.energy_j,
                    gap=one.gap,
                )
            )

    def _operators(self, phase: Phase) -> Iterator[tuple[OpId, str]]:
        for number, name in enumerate(OPERATORS):
            yield OpId(self._first[phase] + number), name


def _value(value_id: ValueId, name: str, producer: OpId | None) -> Value:
    return Value(
        value_id=value_id,
        role="activation" if producer is not None else "input",
        name=name if producer is None else "",
        shape=(64,),
        dtype="float64",
        producer=producer,
        storage_id=int(value_id),
        version=0,
    )


def _operator(number: int, phase: Phase, name: str, reads: int, stack_id: StackId) -> Operator:
    return Operator(
        op_id=OpId(number),
        phase=phase,
        name=f"board.{name}",
        inputs=(ValueId(reads),),
        outputs=(ValueId(reads + 1),),
        mutated=(),
        attributes="{}",
        module_path=name,
        stack_id=stack_id,
        effect="compute",
        flops=128,
        bytes_moved=1024,
        key_id=KeyId(number),
        duration_s=None,
    )
