import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
from toy_recording import alive, await_true, toy_prepare, toy_worker

from magneton.errors import MagnetonError, WorkerFailed, WorkerOutOfMemory
from magneton.record.assemble import read_journal
from magneton.worker.client import WorkerClient
from magneton.worker.protocol import Done, Measured, Pause, Paused, Prepared, RunBlock, Trace

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what the kernel does for us is Linux's")
BLOCK = RunBlock(phase="prefill", steps=2, round=0, keep=True)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[WorkerClient]:
    with toy_worker(tmp_path) as client:
        yield client
    assert not alive(client.pid)


def test_a_worker_loads_traces_measures_and_leaves(worker: WorkerClient, tmp_path: Path):
    prepared = worker.ask(toy_prepare(tmp_path), Prepared, timeout_s=30)
    worker.ask(Trace(phase="prefill"), Done, timeout_s=30)
    measured = worker.ask(BLOCK, Measured, timeout_s=30)
    paused = worker.ask(Pause(settle_s=1.0), Paused, timeout_s=30)
    worker.release(timeout_s=30)

    profile = read_journal(tmp_path / "journal")
    assert prepared.phases == ("prefill", "decode")
    assert profile.blocks == (measured.reading,)
    assert paused.idle and profile.doubts == ()
    assert 0 <= measured.reading.start_s < 30
    assert profile.origin.system == "toy_system:ToySystem" and profile.origin.versions["toy"] == "1"
    assert profile.origin.meter == prepared.meter and profile.origin.device
    assert profile.outputs["prefill.sum"].tolist() == [0, 1, 2]


def test_warm_up_leaves_no_trace(worker: WorkerClient, tmp_path: Path):
    worker.ask(toy_prepare(tmp_path), Prepared, timeout_s=30)
    warm_up = RunBlock(phase="prefill", steps=2, round=0, keep=False)

    reading = worker.ask(warm_up, Measured, timeout_s=30).reading

    assert reading.duration_s > 0
    assert read_journal(tmp_path / "journal").blocks == ()


def test_whatever_is_printed_goes_to_the_log(worker: WorkerClient, tmp_path: Path):
    worker.ask(toy_prepare(tmp_path, in_="step", how="print_rubbish"), Prepared, timeout_s=30)

    assert worker.ask(BLOCK, Measured, timeout_s=30).reading.steps == 2

    log = (tmp_path / "worker.log").read_bytes()
    for printed in (b"from Python", b"from C \xff", b"from C on 2", b"from a child", b'"kind": "Done"'):
        assert printed in log


def test_a_system_may_spawn_interpreters_that_know_magneton(worker: WorkerClient, tmp_path: Path):
    worker.ask(toy_prepare(tmp_path, in_="load", how="use_processes"), Prepared, timeout_s=60)

    assert "from a child" in (tmp_path / "worker.log").read_text(errors="replace")


@pytest.mark.parametrize(
    ("how", "error_type", "message"),
    [
        ("crash", WorkerFailed, r"toy failed while running prefill: KeyError: .*missing"),
        ("leave", WorkerFailed, r"SystemExit: 7"),
        ("leave_at_once", WorkerFailed, r"toy exited with status 7 while running prefill"),
        ("segfault", WorkerFailed, r"crashed with signal 11 \(SIGSEGV\)"),
        ("get_killed", WorkerOutOfMemory, r"was killed \(possibly out of memory\)"),
        ("allocate", WorkerOutOfMemory, r"ran out of memory while running prefill: "),
        ("allocate_on_device", WorkerOutOfMemory, r"ran out of memory .*CUDA out of memory"),
        ("die_printing", WorkerFailed, r"exited with status 3"),
    ],
)
def test_a_worker_that_fails_is_one_clear_error(
    tmp_path: Path, how: str, error_type: type[WorkerFailed], message: str
):
    with toy_worker(tmp_path) as worker:
        worker.ask(toy_prepare(tmp_path, in_="step", how=how), Prepared, timeout_s=30)
        with pytest.raises(error_type, match=message) as raised:
            worker.ask(BLOCK, Measured, timeout_s=30)

    assert type(raised.value) is error_type
    assert str(tmp_path / "worker.log") in raised.value.hint
    assert (str(raised.value) + raised.value.hint).replace("\n", "").isprintable()
    assert not alive(worker.pid)


def test_the_end_of_the_log_is_in_the_error(tmp_path: Path):
    with toy_worker(tmp_path) as worker:
        worker.ask(toy_prepare(tmp_path, in_="step", how="die_printing"), Prepared, timeout_s=30)
        with pytest.raises(WorkerFailed) as raised:
            worker.ask(BLOCK, Measured, timeout_s=30)

    assert "  | 100%" in raised.value.hint and "from C on 2" in raised.value.hint


def test_a_segfault_shows_the_line(tmp_path: Path):
    with toy_worker(tmp_path) as worker:
        worker.ask(toy_prepare(tmp_path, in_="step", how="segfault"), Prepared, timeout_s=30)
        with pytest.raises(WorkerFailed) as raised:
            worker.ask(BLOCK, Measured, timeout_s=30)

    assert "in segfault" in raised.value.hint


def test_a_worker_that_hangs_is_ended_and_shows_where(tmp_path: Path):
    with toy_worker(tmp_path) as worker:
        worker.ask(toy_prepare(tmp_path, in_="step", how="hang"), Prepared, timeout_s=30)
        began_s = time.monotonic()
        with pytest.raises(
            WorkerFailed, match=r"did not answer within 0\.5 s while running prefill"
        ) as raised:
            worker.ask(BLOCK, Measured, timeout_s=0.5)

    assert time.monotonic() - began_s < 3
    assert "in hang" in raised.value.hint
    assert not alive(worker.pid)


def test_a_worker_killed_from_outside_is_noticed_at_once(tmp_path: Path):
    with toy_worker(tmp_path) as worker:
        worker.ask(toy_prepare(tmp_path, in_="step", how="hang"), Prepared, timeout_s=30)
        kill = threading.Timer(0.2, lambda: subprocess.run(["kill", "-KILL", str(worker.pid)], check=True))
        kill.start()
        with pytest.raises(WorkerOutOfMemory, match="was killed"):
            worker.ask(BLOCK, Measured, timeout_s=30)
        kill.join()


def test_errors_meant_for_the_user_arrive_as_they_are(worker: WorkerClient, tmp_path: Path):
    with pytest.raises(MagnetonError, match="no such thing") as raised:
        worker.ask(toy_prepare(tmp_path, in_="load", how="user_error"), Prepared, timeout_s=30)

    assert type(raised.value) is MagnetonError and raised.value.hint == "try another"


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("transfomers", "unknown system 'transfomers'"),
        ("toy_system:NoSuch", "toy_system has no 'NoSuch'"),
        ("no_such_module:Toy", "no module 'no_such_module'"),
    ],
)
def test_unknown_systems_are_named(worker: WorkerClient, tmp_path: Path, system: str, message: str):
    with pytest.raises(MagnetonError, match=message):
        worker.ask(toy_prepare(tmp_path, system=system), Prepared, timeout_s=30)


BROKEN = """
class Broken:
    def load(self, setup):
        raise RuntimeError("1 error in many lines:\\n  the first\\n\\n  the last")
"""


def test_an_exception_of_many_lines_is_told_on_one_and_its_trace_shows_code(tmp_path: Path):
    (tmp_path / "broken.py").write_text(BROKEN)
    python, log = Path(sys.executable), tmp_path / "worker.log"
    with (
        WorkerClient(name="toy", python=python, log=log, environment={"PYTHONPATH": str(tmp_path)}) as client,
        pytest.raises(WorkerFailed) as caught,
    ):
        client.ask(toy_prepare(tmp_path, system="broken:Broken"), Prepared, timeout_s=30)
    assert str(caught.value).endswith("RuntimeError: 1 error in many lines: the first the last")
    told = caught.value.hint.splitlines()
    assert "  |     raise RuntimeError(" in caught.value.hint
    assert not [line for line in told if line.startswith("  |") and not line.strip(" |^~")]


def test_a_command_out_of_order_is_a_crash_and_not_a_hang(worker: WorkerClient):
    with pytest.raises(WorkerFailed, match="Trace before Prepare"):
        worker.ask(Trace(phase="prefill"), Done, timeout_s=30)


def test_a_missing_interpreter_is_the_users_error(tmp_path: Path):
    with pytest.raises(MagnetonError, match="cannot start"):
        WorkerClient(name="toy", python=tmp_path / "python", log=tmp_path / "log", environment={})


def test_an_interpreter_that_is_none_is_a_failure_with_its_words(tmp_path: Path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho I am no Python >&2\nexit 4\n")
    python.chmod(0o755)

    worker = WorkerClient(name="toy", python=python, log=tmp_path / "log", environment={})
    with worker, pytest.raises(WorkerFailed, match="exited with status 4 while loading") as raised:
        worker.ask(toy_prepare(tmp_path), Prepared, timeout_s=30)

    assert "I am no Python" in raised.value.hint


def test_an_interpreter_that_talks_rubbish_is_a_failure(tmp_path: Path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho hello\nexec sleep 100\n")
    python.chmod(0o755)

    worker = WorkerClient(name="toy", python=python, log=tmp_path / "log", environment={})
    with worker, pytest.raises(WorkerFailed, match="unreadable answer while loading"):
        worker.ask(toy_prepare(tmp_path), Prepared, timeout_s=30)

    assert not alive(worker.pid)


@pytest.mark.parametrize(
    ("how", "timeout_s", "outcome"),
    [
        ("spawn", 30, nullcontext()),
        ("spawn_and_hang", 1.0, pytest.raises(WorkerFailed, match="did not answer")),
        pytest.param(
            "spawn_stranger_and_hang", 3.0, pytest.raises(WorkerFailed, match="did not answer"), marks=LINUX
        ),
        # A forked child keeps the pipe open: that the worker died must be seen without an end of input.
        ("spawn_and_die", 30, pytest.raises(WorkerFailed, match="exited with status 5")),
    ],
)
def test_children_of_every_kind_go_with_the_worker(
    tmp_path: Path, how: str, timeout_s: float, outcome: AbstractContextManager[object]
):
    pids_file = tmp_path / "pids"
    with toy_worker(tmp_path, pids=pids_file) as worker:
        worker.ask(toy_prepare(tmp_path, in_="trace", how=how), Prepared, timeout_s=30)
        with outcome:
            worker.ask(Trace(phase="prefill"), Done, timeout_s=timeout_s)
        pids = json.loads(pids_file.read_text())

    assert len(pids) >= 4
    assert await_true(lambda: not any(alive(pid) for pid in pids), within_s=2)


PARENT = """
import sys
from pathlib import Path
from toy_recording import toy_prepare, toy_worker
from magneton.worker.protocol import Done, Prepared, Trace
folder = Path(sys.argv[1])
with toy_worker(folder, pids=folder / "pids") as worker:
    worker.ask(toy_prepare(folder, in_="trace", how=sys.argv[2]), Prepared, timeout_s=60)
    worker.ask(Trace(phase="prefill"), Done, timeout_s=60)
    sys.stdin.read()
"""


@contextmanager
def parent_of_worker(folder: Path, how: str) -> Generator[tuple[subprocess.Popen[bytes], list[int]]]:
    """A process that has a worker, and the worker with its descendants, all of them running."""
    temporary = folder / "temporary"
    temporary.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder), how],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": ":".join(sys.path), "TMPDIR": str(temporary)},
    )
    with parent:
        assert await_true((folder / "pids").exists, within_s=30)
        pids: list[int] = json.loads((folder / "pids").read_text())
        assert all(alive(pid) for pid in pids)
        yield parent, pids


@pytest.mark.parametrize("how", ["spawn", "spawn_and_hang"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_a_parent_that_is_killed(tmp_path: Path, how: str, number: signal.Signals):
    with parent_of_worker(tmp_path, how) as (parent, pids):
        assert list((tmp_path / "temporary").iterdir())
        parent.send_signal(number)

        assert await_true(lambda: not any(alive(pid) for pid in pids), within_s=5)
        assert await_true(lambda: not list((tmp_path / "temporary").iterdir()), within_s=5)


@LINUX
def test_a_worker_that_hangs_goes_with_its_parent_even_without_its_guard(tmp_path: Path):
    with parent_of_worker(tmp_path, "spawn_and_hang") as (parent, pids):
        worker = pids[0]
        children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
        (guard,) = {int(pid) for pid in children} - set(pids)
        os.kill(guard, signal.SIGKILL)
        parent.kill()

        assert await_true(lambda: not alive(worker), within_s=5)
        for pid in pids[1:]:
            os.kill(pid, signal.SIGKILL)  # what only the guard would have ended


def test_a_worker_that_stays_busy_while_paused_is_found(tmp_path: Path):
    with toy_worker(tmp_path) as worker:
        worker.ask(toy_prepare(tmp_path, in_="load", how="spin"), Prepared, timeout_s=30)
        paused = worker.ask(Pause(settle_s=0.1), Paused, timeout_s=30)

    assert not paused.idle and paused.busy_cores > 0.1
    assert [doubt.kind for doubt in read_journal(tmp_path / "journal").doubts] == ["paused-side-busy"]


def test_a_package_that_the_interpreter_lacks_is_named(worker: WorkerClient, tmp_path: Path):
    with pytest.raises(MagnetonError, match="needs the package 'no_such_package'") as raised:
        worker.ask(toy_prepare(tmp_path, in_="load", how="lack_a_package"), Prepared, timeout_s=30)

    assert sys.executable in str(raised.value)
    assert "--python" in raised.value.hint
