"""Recordings of real systems, each in its own interpreter, made once in a session and two at a time."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from tiny_models import tiny_model

from magneton.envs.consent import Conversation
from magneton.envs.interpreter import Named
from magneton.envs.use import interpreters, variables_for
from magneton.errors import MagnetonError
from magneton.models.model import Model, read_model
from magneton.profile.model import Profile
from magneton.record.progress import NoProgress
from magneton.record.request import RecordRequest
from magneton.record.session import record
from magneton.system import describe
from magneton.workload import DECODE, PREFILL, Continuation, Workload

IN_WORKER = Path(__file__).parent.parent / "systems" / "in_worker"
SYSTEMS = ("torch", "transformers", "vllm", "sglang")
ENGINES = ("vllm", "sglang")
BATCH = Workload(batch=3, prompt_tokens=12, decode_steps=3)
GIVEN: Continuation = ((5, 600, 7), (808, 9, 1010), (11, 12, 13))
AT_ONCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is recorded of each system. ``given``: the tokens that decode steps are fed."""

    workload: Workload = BATCH
    model: str = "llama"
    given: Continuation | None = None


CASES: Mapping[str, Case] = {
    "greedy": Case(),
    "given": Case(given=GIVEN),
    "gpt2": Case(model="gpt2"),
    "prefill only": Case(workload=Workload(batch=3, prompt_tokens=12, decode_steps=0, phases=(PREFILL,))),
    "one decode step": Case(workload=Workload(prompt_tokens=12, decode_steps=1, phases=(DECODE,))),
    "bfloat16": Case(workload=Workload(batch=3, prompt_tokens=12, decode_steps=3, dtype="bfloat16")),
}


class Wanted(NamedTuple):
    case: str
    system: str


@dataclass(kw_only=True)
class Recordings:
    """Those of systems that this machine has; a test that wants another one is skipped with the reason."""

    models: Mapping[str, Model]
    pythons: Mapping[str, Path]
    missing: Mapping[str, str]
    pool: ThreadPoolExecutor
    under_way: dict[Wanted, Future[Profile]] = field(default_factory=dict[Wanted, "Future[Profile]"])

    def begin(self) -> None:
        """All of them; whoever asks for one waits for that one."""
        for case in CASES:
            for system in self.pythons:
                request = self._request(CASES[case], system)
                self.under_way[Wanted(case, system)] = self.pool.submit(record, request)

    def of(self, system: str, case: str = "greedy") -> Profile:
        if system in self.missing:
            pytest.skip(self.missing[system])
        return self.under_way[Wanted(case, system)].result()

    def _request(self, case: Case, system: str) -> RecordRequest:
        model = self.models[case.model]
        return RecordRequest(
            system=f"repeated:{system.capitalize()}",
            model=model.name,
            model_folder=model.folder,
            config_hash=model.config_hash,
            weights_hash=model.weights_hash,
            workload=case.workload,
            meter="counted:flops",
            python=self.pythons[system],
            environment={"PYTHONPATH": str(IN_WORKER), **variables_for(self.pythons[system])},
            grad_mode="inference",
            continuation=case.given,
        )


def open_recordings(folder: Path, uses: ExitStack) -> Recordings:
    """Begin to record whatever can be recorded here; environments are in use until ``uses`` is closed."""
    pythons: dict[str, Path] = {}
    missing: dict[str, str] = {}
    for system in SYSTEMS:
        chosen = interpreters({system: describe(system)}, "cpu", Named(), Conversation(), NoProgress())
        try:
            pythons[system] = uses.enter_context(chosen)[system]
        except MagnetonError as error:
            missing[system] = f"{error} ({error.hint})"
    models = {name: read_model(tiny_model(name, folder), name=f"{name}-tiny") for name in ("llama", "gpt2")}
    pool = ThreadPoolExecutor(AT_ONCE)
    uses.callback(pool.shutdown, cancel_futures=True)
    recordings = Recordings(models=models, pythons=pythons, missing=missing, pool=pool)
    recordings.begin()
    return recordings
