from pathlib import Path

import pytest
from toy_recording import toy_request

from magneton.errors import MagnetonError
from magneton.record.runs import check_output, check_room, run_folder
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
        raise KeyError

    assert folder.is_dir() and folder.parent == tmp_path / "runs"


@needs_proc
def test_a_cache_that_cannot_be_written_is_found_before_any_worker_starts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAGNETON_CACHE", "/proc/magneton")

    with pytest.raises(MagnetonError, match="cannot write into /proc/magneton/runs") as raised:
        record(toy_request(in_="load", how="crash"))

    assert "MAGNETON_CACHE" in raised.value.hint


def test_a_good_output_passes_and_is_not_touched(tmp_path: Path):
    check_output(tmp_path / "new.mgn")
    (tmp_path / "old.mgn").write_text("old")
    check_output(tmp_path / "old.mgn")

    assert [path.name for path in tmp_path.iterdir()] == ["old.mgn"]
    assert (tmp_path / "old.mgn").read_text() == "old"


def test_an_output_without_a_folder_is_refused(tmp_path: Path):
    with pytest.raises(MagnetonError, match="no folder"):
        check_output(tmp_path / "nowhere" / "x.mgn")


def test_an_output_that_is_a_folder_is_refused(tmp_path: Path):
    with pytest.raises(MagnetonError, match="is a folder"):
        check_output(tmp_path)


@needs_proc
def test_an_output_that_cannot_be_written_is_refused():
    with pytest.raises(MagnetonError, match="cannot write into /proc"):
        check_output(Path("/proc/x.mgn"))


def test_too_little_room_is_refused(tmp_path: Path):
    with pytest.raises(MagnetonError, match="MiB left") as raised:
        check_room(tmp_path, 1 << 62, hint="free some")

    assert raised.value.hint == "free some"
