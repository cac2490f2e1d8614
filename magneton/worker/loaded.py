"""A system that is loaded and ready to be measured, with all that measures it."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

import magneton
from magneton.errors import MagnetonError
from magneton.interventions import INTERVENED
from magneton.meters.host import beside_host, host_info
from magneton.meters.registry import check_meter, open_meter
from magneton.profile.model import BlockReading, Doubt
from magneton.profile.origin import Cache, Origin
from magneton.record.blocks import run_block, run_clean_block
from magneton.record.journal import Journal
from magneton.record.request import Filled
from magneton.record.scopes import SCOPES_ROOT
from magneton.record.survey import survey
from magneton.record.tracer import Tracer
from magneton.record.windows import Windows
from magneton.systems.running import Facts, RunningSystem, Setup
from magneton.worker.choose import open_system, open_tracer, synchroniser
from magneton.worker.family import busy_cores
from magneton.worker.interventions.apply import apply_after, apply_before
from magneton.worker.machine import device_name, driver_version
from magneton.worker.protocol import (
    Pause,
    Paused,
    Prepare,
    Replay,
    Rest,
    RunBlock,
    Survey,
    TimelineBlock,
    Trace,
)
from magneton.workload import Continuation

IDLE_CORES = 0.1  # a watching thread may wake up now and then
LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """One method per command."""

    system: RunningSystem
    tracer: Tracer
    windows: Windows
    journal: Journal
    started_s: float
    continuation: Continuation | None
    cache: Filled = "warm"

    def trace(self, command: Trace) -> None:
        self.tracer.trace(self.system, command.phase, self.journal)

    def run_block(self, command: RunBlock) -> BlockReading:
        system, phase, steps, round = self.system, command.phase, command.steps, command.round
        clock_s = since(self.started_s)
        if not command.keep:
            reading = run_block(system, phase, steps, round, self.windows, clock_s=clock_s)
            self.windows.meter.samples()
            return reading
        reading, conditions = run_clean_block(system, phase, steps, round, self.windows, clock_s=clock_s)
        for row in (reading, *conditions):
            self.journal.append(row)
        for sample in self.windows.meter.samples():
            at_s = sample.time_s - self.started_s
            self.journal.append(replace(sample, phase=phase, round=round, time_s=at_s))
        self._note()
        return reading

    def timeline(self, command: TimelineBlock) -> BlockReading:
        reading = self.tracer.timeline(
            self.system, command.phase, command.steps, command.round, self.windows, self.journal
        )
        self.windows.meter.samples()
        self.journal.append(reading)
        self._note()
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
                synchronise=self.windows.synchronise,
            )

    def replay(self, command: Replay) -> None:
        self.tracer.replay(
            self.system,
            command.phase,
            command.round,
            self.windows,
            self.journal,
            command.budget_s,
            self.cache,
        )
        self.windows.meter.samples()
        self._note()

    def rest(self, command: Rest) -> None:
        if not self.windows.measures or self.windows.lost:
            return
        now_s = since(self.started_s)()
        self.journal.append(self.windows.rest(command.moment, command.length_s, now_s=now_s))
        self.windows.meter.samples()
        self._note()

    def _note(self) -> None:
        for note in self.windows.take_notes():
            self.journal.append(note)

    def pause(self, command: Pause) -> Paused:
        """Caches stay: dropping them would make the next block pay for filling them again."""
        self.windows.synchronise()
        deadline_s = time.monotonic() + command.settle_s
        busy = busy_cores(LOOK_S)
        while busy > IDLE_CORES and time.monotonic() < deadline_s:
            busy = busy_cores(LOOK_S)
        if busy > IDLE_CORES:
            text = "while paused, this side kept processors busy; figures of the other side may include that"
            self.journal.append(Doubt(kind="paused-side-busy", text=text))
        return Paused(busy_cores=busy, idle=busy <= IDLE_CORES)

    def close(self) -> None:
        self.windows.meter.close()
        self.journal.close()


def since(started_s: float) -> Callable[[], float]:
    """A clock that was zero when the recording started."""
    return lambda: time.monotonic() - started_s


def prepare(command: Prepare) -> Loaded:
    """Load the system, open the meter, and write down where the figures will come from."""
    check_meter(command.meter, command.device)  # loading may take minutes
    system, facts = _load(command)
    sensor = open_meter(command.meter, command.device)
    loaded = Loaded(
        system=system,
        tracer=open_tracer(system.framework, since(command.started_s)),
        windows=Windows(
            beside_host(sensor, command.device),
            synchroniser(system.framework),
            sensor=sensor,
            seed=command.seed,
        ),
        journal=Journal(command.journal),
        started_s=command.started_s,
        continuation=facts.continuation,
        cache=command.cache or "warm",
    )
    loaded.journal.write_origin(_origin(command, facts, loaded.windows))
    for each in command.interventions:
        loaded.journal.append(Doubt(kind=INTERVENED, text=f"recorded with a change under test: {each.text}"))
    return loaded


def _replay_cache(command: Prepare, windows: Windows) -> Cache:
    """An operator that is read where it runs finds the caches as they are."""
    if windows.shortest_window_s > 0:
        return command.cache or "warm"
    if command.cache is not None:
        raise MagnetonError(
            f"the meter {windows.meter.info().name} reads operators where they run, with caches as they are"
            f" and not {command.cache}",
            hint="leave --cache out, or name a meter that reads a sensor",
        )
    return "as met"


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
        apply_before(command.interventions, command.options)
        facts = system.load(setup)
        apply_after(command.interventions, facts.mode, system.roots)
        return system, facts
    except ModuleNotFoundError as error:
        raise MagnetonError(
            f"{command.system} needs the package {error.name!r}, which {sys.executable} does not have",
            hint="install it there, or name another interpreter with --python",
        ) from error


def _origin(command: Prepare, facts: Facts, windows: Windows) -> Origin:
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
        meter=windows.meter.info(),
        threads=command.threads,
        grad_mode=facts.grad_mode,
        mode=facts.mode,
        dataflow_mode=facts.dataflow_mode,
        flags=facts.flags,
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        session=command.session,
        host_meter=host_info(windows.meter),
        replay_cache=_replay_cache(command, windows),
    )
