"""Requests, plans and workers for the toy system, and how to see that a process is gone."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from toy_system import SYSTEM

from magneton.record.plan import RecordPlan, Timeouts
from magneton.record.request import Filled, RecordRequest
from magneton.worker.client import WorkerClient
from magneton.worker.protocol import Prepare
from magneton.workload import Workload

HERE = Path(__file__).parent
WORKLOAD = Workload(phases=("prefill", "decode"))
QUICK = RecordPlan(
    rounds=3,
    block_s=0.004,
    timeline_s=0.002,
    survey_s=0.05,
    warm_up_s=0.002,
    replay_rounds=2,
    in_place_rounds=2,
    settle_s=0.3,
    rest_s=0.01,
    timeouts=Timeouts(block_s=5.0),
)


def toy_environment(pids: Path | None = None, plugins: Path | None = None) -> dict[str, str]:
    """``plugins``: a folder with entry points of its own (``toy_meter.offer``)."""
    folders = [HERE, *([plugins] if plugins else [])]
    return {"PYTHONPATH": os.pathsep.join(map(str, folders)), **({"TOY_PIDS": str(pids)} if pids else {})}


def toy_request(
    *,
    meter: str = "modelled",
    pids: Path | None = None,
    memory: Path | None = None,
    plugins: Path | None = None,
    cache: Filled | None = None,
    gone: Path | None = None,
    **options: str,
) -> RecordRequest:
    """``in`` is a keyword: write ``in_``. A meter that can be lost is lost once ``gone`` exists."""
    told = {"TOY_MEMORY": memory, "TOY_GONE": gone}
    return RecordRequest(
        system=SYSTEM,
        options={name.rstrip("_"): value for name, value in options.items()},
        workload=WORKLOAD,
        meter=meter,
        cache=cache,
        environment={
            **toy_environment(pids, plugins),
            **{name: str(path) for name, path in told.items() if path is not None},
        },
    )


def toy_worker(folder: Path, *, pids: Path | None = None) -> WorkerClient:
    return WorkerClient(
        name="toy",
        python=Path(sys.executable),
        log=folder / "worker.log",
        environment=toy_environment(pids),
    )


def toy_prepare(folder: Path, *, system: str = SYSTEM, meter: str = "modelled", **options: str) -> Prepare:
    return Prepare(
        system=system,
        options={name.rstrip("_"): value for name, value in options.items()},
        model="toy-model",
        model_folder=None,
        config_hash="c",
        weights_hash="w",
        workload=WORKLOAD,
        meter=meter,
        device="cpu",
        threads=1,
        session="s",
        journal=folder / "journal",
        started_s=time.monotonic(),
    )


def await_true(condition: Callable[[], bool], *, within_s: float = 10.0) -> bool:
    """Whether ``condition`` came true soon enough."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True


def alive(pid: int) -> bool:
    """Whether ``pid`` still runs; a zombie that nobody reaps does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        if Path("/proc/self").exists():
            return False
        return _answers(pid)
    return status.rpartition(")")[2].split()[0] != "Z"


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
