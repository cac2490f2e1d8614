"""One side of a recording: a worker, and what has been learnt about how long its steps take."""

from pathlib import Path
from types import TracebackType
from typing import Self

from magneton.profile.model import Moment, Profile
from magneton.quantity import Provenance
from magneton.record.assemble import read_journal
from magneton.record.journal import mark_traced
from magneton.record.plan import RecordPlan, Turn, steps_for
from magneton.record.request import RecordRequest
from magneton.worker.client import WorkerClient
from magneton.worker.protocol import (
    Done,
    Measured,
    Pause,
    Paused,
    Prepare,
    Prepared,
    Replay,
    Rest,
    RunBlock,
    Survey,
    TimelineBlock,
    Trace,
)
from magneton.workload import Continuation, Phase

NOT_KEPT = 0  # the round of a block that is not kept


class Side:
    """Starts the worker at once. One method per thing that can be asked of it."""

    def __init__(self, request: RecordRequest, plan: RecordPlan, folder: Path, *, seed: int = 0) -> None:
        folder.mkdir()
        self.label = request.label()
        self.journal = folder
        self._request = request
        self._plan = plan
        self._seed = seed
        self._step_s: dict[Phase, float] = {}
        self._settles = True
        self._client = WorkerClient(
            name=self.label,
            python=request.python,
            log=folder / "worker.log",
            environment=request.worker_environment(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """No process of this side is left afterwards."""
        self._client.close()

    def prepare(self, *, session: str, started_s: float, continuation: Continuation | None = None) -> None:
        """Load the system; its decode steps are fed ``continuation`` where the request does not say."""
        request = self._request
        command = Prepare(
            system=request.system,
            options=request.options,
            model=request.model,
            model_folder=request.model_folder,
            config_hash=request.config_hash,
            weights_hash=request.weights_hash,
            workload=request.workload,
            meter=request.meter,
            device=request.device,
            threads=request.threads,
            session=session,
            journal=self.journal,
            started_s=started_s,
            grad_mode=request.grad_mode,
            continuation=request.continuation or continuation,
            cache=request.cache,
            seed=self._seed,
            interventions=request.interventions,
        )
        self._prepared = self._client.ask(command, Prepared, timeout_s=self._plan.timeouts.prepare_s)

    @property
    def phases(self) -> tuple[Phase, ...]:
        return self._prepared.phases

    @property
    def continuation(self) -> Continuation | None:
        """What decode steps are fed."""
        return self._prepared.continuation

    @property
    def shortest_window_s(self) -> float:
        """Of this side's meter."""
        return self._prepared.shortest_window_s

    @property
    def counts_only(self) -> bool:
        """Counts are the same in every repetition: one trace holds them all."""
        return self._prepared.meter.follows_from_counts

    @property
    def measures(self) -> bool:
        """Its meter reads a sensor: there is an idle power to know."""
        return self._prepared.meter.provenance is Provenance.MEASURED

    def trace(self, phase: Phase) -> None:
        self._client.ask(Trace(phase=phase), Done, timeout_s=self._plan.timeouts.trace_s)
        if phase == self.phases[-1]:
            mark_traced(self.journal)

    def warm_up(self, phase: Phase) -> None:
        """The first step may compile; later ones show how long a step takes."""
        self._step_s[phase] = self._warm(phase, 1)
        half_s = self._plan.warm_up_s / 2
        for _ in range(2):
            self._step_s[phase] = self._warm(phase, steps_for(half_s, self._step_s[phase]))

    def _warm(self, phase: Phase, steps: int) -> float:
        command = RunBlock(phase=phase, steps=steps, round=NOT_KEPT, keep=False)
        timeout_s = self._plan.block_timeout_s(steps, self._step_s.get(phase, 0.0))
        return self._client.ask(command, Measured, timeout_s=timeout_s).reading.duration_s / steps

    def block(self, turn: Turn) -> None:
        """One clean or timeline block of the length that the plan and the meter ask for."""
        window_s, step_s = self.shortest_window_s, self._step_s[turn.phase]
        if turn.pass_ == "clean":
            steps = steps_for(self._plan.block_length_s(window_s), step_s)
            command = RunBlock(phase=turn.phase, steps=steps, round=turn.round, keep=True)
        else:
            steps = steps_for(self._plan.timeline_length_s(window_s), step_s)
            command = TimelineBlock(phase=turn.phase, steps=steps, round=turn.round)
        self._client.ask(command, Measured, timeout_s=self._plan.block_timeout_s(steps, step_s))

    def survey(self, phase: Phase) -> None:
        """Where a step spends its time, by scope."""
        length_s = self._plan.survey_s
        timeout_s = self._plan.block_timeout_s(1, length_s + self._step_s[phase])
        self._client.ask(Survey(phase=phase, length_s=length_s), Done, timeout_s=timeout_s)

    def replay(self, phase: Phase, round: int) -> None:
        budget_s = self._plan.replay_call_s(len(self.phases))
        command = Replay(phase=phase, round=round, budget_s=budget_s)
        self._client.ask(command, Done, timeout_s=budget_s + self._plan.timeouts.replay_s)

    def rest(self, moment: Moment) -> None:
        """What device and host draw while this side is ready and does nothing."""
        length_s = self._plan.rest_length_s(self.shortest_window_s)
        timeout_s = self._plan.block_timeout_s(1, length_s)
        self._client.ask(Rest(moment=moment, length_s=length_s), Done, timeout_s=timeout_s)

    def pause(self) -> None:
        """Until the next command. The worker notes a doubt if it is not idle, and is not waited for again."""
        command = Pause(settle_s=self._plan.settle_s if self._settles else 0.0)
        self._settles = self._client.ask(command, Paused, timeout_s=self._plan.timeouts.pause_s).idle

    def release(self) -> Profile:
        """Everything was measured: let the worker go and read what it wrote."""
        self._client.release(timeout_s=self._plan.timeouts.release_s)
        self._client.close()
        return read_journal(self.journal)
