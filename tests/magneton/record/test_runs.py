from pathlib import Path

import pytest
from toy_recording import toy_request

from magneton.errors import MagnetonError
from magneton.record.runs import check_room, run_folder
from magneton.record.session import record

needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write")


def test_a_run_that_succeeds_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path))
    with run_folder() as folder:
        (folder / "baseline").mkdir()

    assert list((tmp_path / "runs").iterdir()) == []


def test_a_run_that_fails_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path))
    with pytest.raises(KeyError), run_folder() as folder:
        (folder / "baseline").mkdir()
        raise KeyError

    assert (folder / "baseline").is_dir() and folder.parent == tmp_path / "runs"


def test_a_run_that_fails_before_it_wrote_anything_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path))
    with pytest.raises(KeyError), run_folder():
        raise KeyError

    assert list((tmp_path / "runs").iterdir()) == []


@needs_proc
def test_a_cache_that_cannot_be_written_is_found_before_any_worker_starts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAGNETON_CACHE", "/proc/magneton")

    with pytest.raises(MagnetonError, match="cannot write into /proc/magneton/runs") as raised:
        record(toy_request(in_="load", how="crash"))

    assert "MAGNETON_CACHE" in raised.value.hint


def test_too_little_room_is_refused(tmp_path: Path):
    with pytest.raises(MagnetonError, match="MiB left") as raised:
        check_room(tmp_path, 1 << 62)

    assert "MAGNETON_CACHE" in raised.value.hint
