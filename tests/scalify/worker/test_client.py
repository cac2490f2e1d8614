"""Whatever becomes of a worker, the parent answers, and nothing of the worker is left."""

import os
from pathlib import Path
from time import monotonic

import pytest
from scalify_results import killed, proved, stuck
from scalify_workers import request, worker

from scalify.errors import EXIT_USER_ERROR, InvalidGraph, ScalifyError
from scalify.report.result import RegionsDone, Result
from scalify.verdict import Reason
from scalify.worker.client import Prover
from scalify.worker.crashed import ProverCrashed

TOLD = "tell(Posed(unanswered=killed('')))\ntell(Proving(done=3, total=8))\n"


def answer(folder: Path, body: str, *, duration_s: float = 60.0) -> Result:
    """Its answer; it has ended by then."""
    with Prover(request(duration_s=duration_s), boot=worker(folder, body)) as prover:
        result = prover.result()
        assert has_ended(prover.pid)
    return result


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_its_answer_is_the_answer_with_what_it_cost(tmp_path: Path):
    result = answer(tmp_path, "tell(Finished(result=proved()))")
    assert result.outputs == proved().outputs
    assert result.cost is not None
    assert result.cost.cpu_s is not None
    assert 0 < result.cost.wall_s < 60
    assert result.cost.cpu_s > 0


def test_what_it_does_after_its_answer_is_not_waited_for(tmp_path: Path):
    start_s = monotonic()
    answer(tmp_path, "tell(Finished(result=proved()))\ntime.sleep(60)")
    assert monotonic() - start_s < 20


def test_an_error_of_the_user_is_raised_as_it_was(tmp_path: Path):
    with pytest.raises(InvalidGraph, match="it is empty") as raised:
        answer(tmp_path, "tell(Refused(error='InvalidGraph', message='it is empty', hint='fill it'))")
    assert raised.value.hint == "fill it"


@pytest.mark.parametrize("name", ["EXIT_OK", "SystemExit", "NoSuchThing", "ClassVar"])
def test_an_error_of_unknown_name_is_still_one_of_the_user(name: str, tmp_path: Path):
    with pytest.raises(ScalifyError) as raised:
        answer(tmp_path, f"tell(Refused(error={name!r}, message='odd', hint='none'))")
    assert raised.value.exit_code == EXIT_USER_ERROR


def test_progress_is_passed_on(tmp_path: Path):
    heard: list[tuple[int, int]] = []
    body = TOLD + "tell(Proving(done=8, total=8))\ntell(Finished(result=stuck()))"
    with Prover(request(), boot=worker(tmp_path, body)) as prover:
        result = prover.result(lambda done, total: heard.append((done, total)))
    assert heard == [(3, 8), (8, 8)]
    assert result.reason is Reason.UNPROVED


def test_out_of_time_it_is_ended_and_what_it_told_is_kept(tmp_path: Path):
    body = "tell(Posed(unanswered=stuck()))\ntell(Proving(done=3, total=8))\ntime.sleep(60)"
    result = answer(tmp_path, body, duration_s=1.0)
    assert (result.verdict, result.reason) == ("unknown", Reason.KILLED)
    assert result.detail == "the time limit of 1 s was reached"
    assert result.progress == RegionsDone(done=3, total=8)
    assert result.assumptions == stuck().assumptions


def test_a_worker_that_never_says_anything_is_ended_too(tmp_path: Path):
    result = answer(tmp_path, "time.sleep(60)", duration_s=0.5)
    assert [file.path for file in result.candidate.files] == ["four.scg"]
    assert result.baseline.nodes is None


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("tell(OutOfMemory())", "the memory limit of 2 GB was reached"),
        ("raise MemoryError", "the memory limit of 2 GB was reached"),
        ("os.write(2, b'memory allocation of 64 bytes failed'); os.abort()", "the memory limit of 2 GB"),
        ("os.abort()", "ended by SIGABRT, most likely for want of memory"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL, most likely for want of memory"),
        ("os.kill(os.getpid(), signal.SIGXCPU)", "the time limit of 60 s was reached"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "ended by signal 15"),
    ],
)
def test_however_it_dies_the_answer_says_so(body: str, detail: str, tmp_path: Path):
    result = answer(tmp_path, TOLD + body)
    assert (result.verdict, result.reason) == ("unknown", killed().reason)
    assert detail in result.detail
    assert result.progress == RegionsDone(done=3, total=8)


@pytest.mark.parametrize("body", ["1 / 0", "sys.exit('division by zero')", "print('no event')"])
def test_a_bug_in_it_is_raised_with_its_last_words(body: str, tmp_path: Path):
    with pytest.raises((ProverCrashed, ValueError), match=r"division by zero|Expecting value"):
        answer(tmp_path, TOLD + body)


def test_much_noise_on_standard_error_does_not_stop_it(tmp_path: Path):
    body = "sys.stderr.write('x' * 5_000_000)\nsys.stderr.flush()\ntell(Finished(result=proved()))"
    assert answer(tmp_path, body).verdict == "proved"


def test_an_answer_of_megabytes_arrives_whole(tmp_path: Path):
    body = """
from dataclasses import replace
content = write_event(Finished(result=replace(proved(), notes=("x" * 1000,) * 4000)))
while content:
    content = content[os.write(1, content):]
"""
    assert answer(tmp_path, body).notes == ("x" * 1000,) * 4000


def test_leaving_the_block_ends_it(tmp_path: Path):
    with (
        pytest.raises(KeyboardInterrupt),
        Prover(request(), boot=worker(tmp_path, "time.sleep(60)")) as prover,
    ):
        raise KeyboardInterrupt
    assert has_ended(prover.pid)
