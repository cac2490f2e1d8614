import json
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from toy_meter import HOST_W, HOT, POWER_W, offer
from toy_recording import QUICK, alive, await_true, toy_request

from magneton.errors import EXIT_INTERRUPTED, Interrupted, MagnetonError, WorkerFailed, WorkerOutOfMemory
from magneton.profile.model import BlockReading, Profile
from magneton.record.session import record, record_pair, recorded

PHASES = ("prefill", "decode")


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's recordings lie."""
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "runs"


class Seen:
    """A progress that remembers, and does something at a chosen moment."""

    def __init__(self, at: str = "", act: Callable[[], None] = lambda: None) -> None:
        self.calls: list[tuple[int, int, str]] = []
        self._at = at
        self._act = act

    def update(self, done: int, total: int, text: str) -> None:
        self.calls.append((done, total, text))
        if self._at and text.startswith(self._at):
            self._act()


def interrupt() -> None:
    raise KeyboardInterrupt


def by_time(baseline: Profile, candidate: Profile) -> list[tuple[str, BlockReading]]:
    blocks = [("baseline", block) for block in baseline.blocks]
    blocks += [("candidate", block) for block in candidate.blocks]
    return sorted(blocks, key=lambda item: item[1].start_s)


def test_a_pair_is_measured_in_turns_in_one_session(runs: Path):
    progress = Seen()
    baseline, candidate = record_pair(toy_request(), toy_request(step_s="0.0004"), QUICK, progress)

    assert baseline.origin.session == candidate.origin.session != ""
    assert baseline.origin.options == {} and candidate.origin.options == {"step_s": "0.0004"}
    for pass_ in ("clean", "timeline"):
        for phase in PHASES:
            sequence = [
                (side, block.round)
                for side, block in by_time(baseline, candidate)
                if (block.pass_, block.phase) == (pass_, phase)
            ]
            assert sequence == [
                ("baseline", 0),
                ("candidate", 0),
                ("candidate", 1),
                ("baseline", 1),
                ("baseline", 2),
                ("candidate", 2),
            ]
    for (_, first), (_, second) in pairwise(by_time(baseline, candidate)):
        assert first.start_s + first.duration_s <= second.start_s
    assert list(runs.iterdir()) == []


def test_blocks_are_as_long_as_planned_for_either_side():
    baseline, candidate = record_pair(toy_request(), toy_request(step_s="0.002"), QUICK)

    for profile, step_s in ((baseline, 0.0002), (candidate, 0.002)):
        clean = [block for block in profile.blocks if block.pass_ == "clean"]
        assert all(1 <= block.steps <= QUICK.block_s / step_s + 1 for block in clean)
    assert min(block.steps for block in candidate.blocks) < max(block.steps for block in baseline.blocks)


def test_all_four_passes_reach_the_profile():
    profile = record(toy_request(), QUICK)

    assert profile.origin.session == ""
    assert [operator.op_id for operator in profile.operators] == [0, 1]
    assert all(operator.duration_s == 2e-6 for operator in profile.operators)  # median of rounds 1, 2, 3
    assert len(profile.blocks) == QUICK.rounds * len(PHASES) * 2
    assert [reading.round for reading in profile.replays] == [0, 0, 1, 1]
    assert set(profile.outputs) == {"prefill.sum", "decode.sum"}
    assert profile.doubts == ()


def test_progress_counts_up_to_its_total():
    progress = Seen()
    record(toy_request(), QUICK, progress)

    done = [call[0] for call in progress.calls]
    assert done == list(range(len(done)))
    assert progress.calls[-1][:2] == (done[-1], done[-1])
    assert len({total for _, total, _ in progress.calls[1:]}) == 1


def test_counting_needs_one_trace_and_nothing_else():
    baseline, candidate = record_pair(toy_request(meter="counted"), toy_request(meter="counted"), QUICK)

    for profile in (baseline, candidate):
        assert len(profile.operators) == 2
        assert (profile.blocks, profile.replays) == ((), ())


def test_sides_recorded_one_after_the_other_never_call_themselves_paired():
    baseline, candidate = record_pair(toy_request(), toy_request(), QUICK, sequential=True)

    for profile in (baseline, candidate):
        assert profile.origin.session == ""
        assert [doubt.kind for doubt in profile.doubts] == ["recorded-apart"]


def test_a_second_recording_that_fails_does_not_cost_the_first(runs: Path):
    with pytest.raises(WorkerFailed) as raised:
        record_pair(toy_request(), toy_request(in_="load", how="segfault"), QUICK, sequential=True)

    (baseline,) = recorded(raised.value)
    assert len(baseline.blocks) == QUICK.rounds * len(PHASES) * 2
    assert len(list(runs.iterdir())) == 1


def test_systems_that_do_not_fit_at_once_are_recorded_apart(tmp_path: Path, runs: Path):
    request = toy_request(in_="load", how="need_all_memory", memory=tmp_path / "memory")

    baseline, candidate = record_pair(request, request, QUICK)

    assert baseline.origin.session == candidate.origin.session == ""
    assert baseline.blocks and candidate.blocks
    assert list(runs.iterdir()) == []


def test_a_system_that_does_not_fit_alone_is_an_error():
    with pytest.raises(WorkerOutOfMemory, match="how=allocate ran out of memory while loading"):
        record_pair(toy_request(), toy_request(in_="load", how="allocate"), QUICK)


def test_a_side_that_works_while_paused_is_doubted():
    baseline, candidate = record_pair(toy_request(), toy_request(in_="load", how="spin"), QUICK)

    assert baseline.doubts == ()
    assert [doubt.kind for doubt in candidate.doubts] == ["paused-side-busy"]


@pytest.mark.parametrize("place", ["timeline", "replay"])
def test_a_failure_keeps_what_was_measured_and_says_where(runs: Path, place: str):
    with pytest.raises(WorkerFailed, match="crashed with signal 11") as raised:
        record_pair(toy_request(), toy_request(in_=place, how="segfault"), QUICK)

    baseline, candidate = recorded(raised.value)
    assert len(baseline.operators) == len(candidate.operators) == 2
    assert baseline.blocks and candidate.blocks
    (run,) = runs.iterdir()
    assert str(run) in raised.value.hint


def test_a_failure_before_the_trace_leaves_the_log(runs: Path):
    with pytest.raises(WorkerFailed) as raised:
        record(toy_request(in_="trace", how="segfault"), QUICK)

    assert recorded(raised.value) == ()
    (run,) = runs.iterdir()
    assert str(run / "baseline" / "worker.log") in raised.value.hint


def test_what_the_user_got_wrong_leaves_nothing_behind(runs: Path):
    with pytest.raises(MagnetonError, match="no such thing"):
        record(toy_request(in_="load", how="user_error"), QUICK)

    assert list(runs.iterdir()) == []


def test_stopping_in_the_middle_keeps_complete_rounds(runs: Path):
    with pytest.raises(Interrupted) as raised:
        record_pair(toy_request(), toy_request(), QUICK, Seen(at="round 2", act=interrupt))

    assert raised.value.exit_code == EXIT_INTERRUPTED
    (run,) = runs.iterdir()
    assert str(run) in raised.value.hint
    for profile in recorded(raised.value):
        assert {block.round for block in profile.blocks} == {0}


def test_stopping_before_the_trace_has_nothing_to_keep():
    with pytest.raises(Interrupted, match="stopped") as raised:
        record_pair(toy_request(), toy_request(), QUICK, Seen(at="tracing", act=interrupt))

    assert recorded(raised.value) == ()


PARENT = """
import sys
from pathlib import Path
from toy_recording import QUICK, toy_request
from magneton.errors import MagnetonError
from magneton.record.session import record_pair, recorded
class Loud:
    def update(self, done, total, text):
        print(text, flush=True)
try:
    pids = Path(sys.argv[1])
    record_pair(toy_request(), toy_request(in_="replay", how="spawn_and_hang", pids=pids), QUICK, Loud())
except MagnetonError as error:
    print("blocks:", [len(profile.blocks) for profile in recorded(error)])
    sys.exit(error.exit_code)
"""


def test_ctrl_c_while_a_worker_hangs_ends_everything(tmp_path: Path, runs: Path):
    pids_file = tmp_path / "pids"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(pids_file)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "MAGNETON_CACHE": str(runs.parent)},
    )
    with parent:
        assert await_true(pids_file.exists, within_s=30)
        parent.send_signal(signal.SIGINT)
        printed, _ = parent.communicate(timeout=10)

    blocks = QUICK.rounds * len(PHASES) * 2
    assert parent.returncode == EXIT_INTERRUPTED
    assert printed.splitlines()[-1] == f"blocks: [{blocks}, {blocks}]"
    assert not any(alive(pid) for pid in json.loads(pids_file.read_text()))


def test_a_system_with_scopes_is_surveyed_and_one_without_is_not(runs: Path):
    del runs
    progress = Seen()
    surveyed, plain = record_pair(toy_request(scope="adding", step_s="0.004"), toy_request(), QUICK, progress)

    assert {(row.phase, row.scope) for row in surveyed.scopes} >= {(phase, "adding") for phase in PHASES}
    assert all(row.duration_s > 0 and row.samples > 0 for row in surveyed.scopes)
    assert plain.scopes == ()
    assert progress.calls[-1][:2] == (progress.calls[-1][1], progress.calls[-1][1])


def test_a_meter_that_measures_reads_idle_power_before_and_after_with_all_sides_paused(tmp_path: Path):
    progress = Seen()
    plugins = offer(tmp_path)
    request = toy_request(meter="toy", plugins=plugins)
    for profile in record_pair(request, request, QUICK, progress):
        assert [row.moment for row in profile.idle] == ["before", "after"]
        first, last = profile.idle
        assert first.power_w == pytest.approx(POWER_W) and first.host_power_w == pytest.approx(HOST_W)
        assert first.time_s + first.duration_s <= min(block.start_s for block in profile.blocks)
        assert last.time_s > max(block.start_s for block in profile.blocks)
        assert {(row.round, row.phase, row.moment) for row in profile.conditions} == {
            (round, phase, moment)
            for round in range(QUICK.rounds)
            for phase in PHASES
            for moment in ("before", "after")
        }
        assert all(block.host_energy_j is not None for block in profile.blocks if block.pass_ == "clean")
        assert profile.origin.replay_cache == "warm"
        assert profile.origin.host_meter is None  # the work runs on the host itself
        assert profile.doubts == ()
    assert progress.calls[-1][:2] == (progress.calls[-1][1], progress.calls[-1][1])


def test_a_model_is_not_asked_what_idling_draws():
    profile = record(toy_request(), QUICK)

    assert (profile.idle, profile.conditions) == ((), ())
    assert profile.origin.replay_cache == "as met"


def test_spoilt_blocks_are_read_again_and_every_try_is_told(tmp_path: Path):
    profile = record(toy_request(meter="toy:hot", plugins=offer(tmp_path)), QUICK)

    clean = [block for block in profile.blocks if block.pass_ == "clean"]
    assert clean and all(block.energy_j is not None and block.gap == "" for block in clean)
    told = {doubt.text for doubt in profile.doubts if doubt.kind == "block-rejected"}
    assert told and all(text.endswith(f"rejected: {HOT}") for text in told)


def test_a_meter_that_is_lost_in_the_middle_costs_nothing_that_was_read_before(tmp_path: Path):
    gone = tmp_path / "gone"
    request = toy_request(meter="toy:lost", plugins=offer(tmp_path), gone=gone)
    profile = record(request, QUICK, Seen(at="round 2", act=gone.touch))

    read = [block for block in profile.blocks if block.energy_j is not None]
    lost = [block for block in profile.blocks if "the toy is broken" in block.gap]
    assert {block.round for block in read if block.pass_ == "clean"} == {0}
    assert lost
    assert all(block.energy_j is None and block.duration_s > 0 for block in lost)
    assert all(block.start_s < min(late.start_s for late in lost) for block in read)
    assert [doubt.kind for doubt in profile.doubts if "broken" in doubt.text] == ["meter-lost"]
    assert profile.idle[-1].moment == "before"


def test_the_state_of_caches_can_be_asked_for_where_operators_are_repeated(tmp_path: Path):
    profile = record(toy_request(meter="toy", plugins=offer(tmp_path), cache="cold"), QUICK)
    assert profile.origin.replay_cache == "cold"
    with pytest.raises(MagnetonError, match="reads operators where they run"):
        record(toy_request(cache="cold"), QUICK)
