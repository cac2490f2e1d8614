"""A system that is loaded and ready to be measured, with all that measures it."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

import magneton
from magneton.errors import MagnetonError
from magneton.meters.meter import Meter
from magneton.meters.registry import open_meter
from magneton.profile.model import BlockReading, Doubt
from magneton.profile.origin import Origin
from magneton.record.blocks import run_block
from magneton.record.journal import Journal
from magneton.record.scopes import SCOPES_ROOT
from magneton.record.survey import survey
from magneton.record.tracer import Tracer
from magneton.systems.running import Facts, RunningSystem, Setup
from magneton.worker.choose import open_system, open_tracer, synchroniser
from magneton.worker.family import busy_cores
from magneton.worker.machine import device_name, driver_version
from magneton.worker.protocol import Pause, Paused, Prepare, Replay, RunBlock, Survey, TimelineBlock, Trace
from magneton.workload import Continuation

IDLE_CORES = 0.1  # a watching thread may wake up now and then
LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """One method per command."""

    system: RunningSystem
    tracer: Tracer
    meter: Meter
    journal: Journal
    synchronise: Callable[[], None]
    started_s: float
    continuation: Continuation | None

    def trace(self, command: Trace) -> None:
        self.tracer.trace(self.system, command.phase, self.journal)

    def run_block(self, command: RunBlock) -> BlockReading:
        reading = run_block(
            self.system,
            command.phase,
            command.steps,
            command.round,
            self.meter,
            synchronise=self.synchronise,
            clock_s=since(self.started_s),
        )
        samples = self.meter.samples()
        if command.keep:
            self.journal.append(reading)
            for sample in samples:
                at_s = sample.time_s - self.started_s
                self.journal.append(replace(sample, phase=command.phase, round=command.round, time_s=at_s))
        return reading

    def timeline(self, command: TimelineBlock) -> BlockReading:
        reading = self.tracer.timeline(
            self.system, command.phase, command.steps, command.round, self.meter, self.journal
        )
        self.journal.append(reading)
        return reading

    def survey(self, command: Survey) -> None:
        table = self.system.roots().get(SCOPES_ROOT)
        if table:
            survey(
                self.system,
                command.phase,
                command.length_s,
                table,
                self.journal,
                synchronise=self.synchronise,
            )

    def replay(self, command: Replay) -> None:
        self.tracer.replay(
            self.system, command.phase, command.round, self.meter, self.journal, command.budget_s
        )

    def pause(self, command: Pause) -> Paused:
        """Caches stay: dropping them would make the next block pay for filling them again."""
        self.synchronise()
        deadline_s = time.monotonic() + command.settle_s
        busy = busy_cores(LOOK_S)
        while busy > IDLE_CORES and time.monotonic() < deadline_s:
            busy = busy_cores(LOOK_S)
        if busy > IDLE_CORES:
            text = "while paused, this side kept processors busy; figures of the other side may include that"
            self.journal.append(Doubt(kind="paused-side-busy", text=text))
        return Paused(busy_cores=busy, idle=busy <= IDLE_CORES)

    def close(self) -> None:
        self.meter.close()
        self.journal.close()


def since(started_s: float) -> Callable[[], float]:
    """A clock that was zero when the recording started."""
    return lambda: time.monotonic() - started_s


def prepare(command: Prepare) -> Loaded:
    """Load the system, open the meter, and write down where the figures will come from."""
    system, facts = _load(command)
    loaded = Loaded(
        system=system,
        tracer=open_tracer(system.framework, since(command.started_s)),
        meter=open_meter(command.meter, command.device),
        journal=Journal(command.journal),
        synchronise=synchroniser(system.framework),
        started_s=command.started_s,
        continuation=facts.continuation,
    )
    loaded.journal.write_origin(_origin(command, facts, loaded.meter))
    return loaded


def _load(command: Prepare) -> tuple[RunningSystem, Facts]:
    setup = Setup(
        options=command.options,
        model_folder=command.model_folder,
        workload=command.workload,
        device=command.device,
        threads=command.threads,
        grad_mode=command.grad_mode,
        continuation=command.continuation,
    )
    try:
        system = open_system(command.system)
        return system, system.load(setup)
    except ModuleNotFoundError as error:
        raise MagnetonError(
            f"{command.system} needs the package {error.name!r}, which {sys.executable} does not have",
            hint="install it there, or name another interpreter with --python",
        ) from error


def _origin(command: Prepare, facts: Facts, meter: Meter) -> Origin:
    python = ".".join(map(str, sys.version_info[:3]))
    return Origin(
        magneton_version=magneton.__version__,
        system=command.system,
        options=command.options,
        versions={"python": python, "numpy": np.__version__, **facts.versions},
        model=command.model,
        config_hash=command.config_hash,
        weights_hash=command.weights_hash,
        workload=command.workload,
        device=device_name(command.device),
        device_kind="cpu" if command.device == "cpu" else "cuda",
        driver=driver_version(command.device),
        meter=meter.info(),
        threads=command.threads,
        grad_mode=facts.grad_mode,
        mode=facts.mode,
        dataflow_mode=facts.dataflow_mode,
        flags=facts.flags,
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        session=command.session,
    )
