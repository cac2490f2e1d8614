"""What was measured before a recording failed or was stopped becomes profiles that say so."""

from pathlib import Path

import pytest
from profiles import small_profile
from toy_recording import QUICK, toy_request
from typer.testing import CliRunner, Result

from magneton.cli.app import app
from magneton.errors import Interrupted, MagnetonError, WorkerFailed
from magneton.profile.model import Profile
from magneton.profile.store import load
from magneton.record.journal import Journal, mark_traced
from magneton.record.recovery import recover
from magneton.record.session import record, record_pair


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "runs"


def magneton(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


class StopAt:
    """A progress during which the user presses Ctrl-C."""

    def __init__(self, text: str) -> None:
        self._text = text

    def update(self, done: int, total: int, text: str) -> None:
        if text.startswith(self._text):
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("at", "rounds", "replays"), [("round 1", 0, 0), ("round 3", 2, 0), ("replaying", 3, 0)]
)
def test_whatever_the_moment_complete_rounds_are_kept(runs: Path, at: str, rounds: int, replays: int):
    with pytest.raises(Interrupted) as raised:
        record_pair(toy_request(), toy_request(), QUICK, StopAt(at))
    (run,) = runs.iterdir()

    assert f"magneton recover {run}" in raised.value.hint
    profiles = recover(run)
    assert list(profiles) == ["baseline", "candidate"]
    for profile in profiles.values():
        assert len({block.round for block in profile.blocks}) == rounds
        assert [doubt.kind for doubt in profile.doubts] == ["cut-short"]
        assert f"after {rounds} rounds of whole steps and {replays} of single" in profile.doubts[0].text


def left_behind(profile: Profile, folder: Path) -> None:
    """What the worker of ``profile`` had written when it was killed in the middle of a row."""
    with Journal(folder) as journal:
        journal.write_origin(profile.origin)
        for row in (*profile.stacks, *profile.keys, *profile.values, *profile.operators, *profile.blocks):
            journal.append(row)
        for name, array in profile.outputs.items():
            journal.save_output(name, array)
    mark_traced(folder)
    with (folder / "blocks.jsonl").open("a") as file:
        file.write('{"half a')


def test_profiles_are_kept_as_files_that_can_be_compared(tmp_path: Path):
    for side in ("baseline", "candidate"):
        left_behind(small_profile(operators=3), tmp_path / "run" / side)
    kept = tmp_path / "kept"

    recovered = magneton("recover", tmp_path / "run", "--save", kept)
    compared = magneton("compare", kept / "baseline.mgn", kept / "candidate.mgn")

    assert recovered.exit_code == 0, recovered.stderr
    assert load(kept / "baseline.mgn").blocks == small_profile(operators=3).blocks
    assert compared.exit_code in (0, 4)
    assert "cut short" in compared.stdout


def test_what_the_user_got_wrong_late_is_told_with_what_was_measured(runs: Path):
    with pytest.raises(MagnetonError, match="no such thing") as raised:
        record(toy_request(in_="replay", how="user_error"), QUICK)

    (run,) = runs.iterdir()
    assert f"magneton recover {run}" in raised.value.hint
    assert recover(run)["baseline"].blocks


def test_without_a_complete_trace_there_is_nothing_to_recover(runs: Path):
    with pytest.raises(Interrupted) as raised:
        record_pair(toy_request(), toy_request(), QUICK, StopAt("tracing decode"))
    (run,) = runs.iterdir()

    assert "recover" not in raised.value.hint
    with pytest.raises(MagnetonError, match="traced to the end"):
        recover(run)


def test_a_side_that_was_not_traced_does_not_cost_the_other(runs: Path):
    with pytest.raises(WorkerFailed):
        record_pair(toy_request(), toy_request(in_="trace", how="segfault"), QUICK)
    (run,) = runs.iterdir()

    assert list(recover(run)) == ["baseline"]


def test_a_folder_that_is_not_there(tmp_path: Path):
    with pytest.raises(MagnetonError, match="cannot read"):
        recover(tmp_path / "nowhere")


def test_what_cannot_be_written_is_told(runs: Path, tmp_path: Path):
    with pytest.raises(Interrupted):
        record(toy_request(), QUICK, StopAt("round 2"))
    (run,) = runs.iterdir()
    (tmp_path / "file").write_text("in the way")

    result = magneton("recover", run, "--save", tmp_path / "file")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot write" in result.stderr
