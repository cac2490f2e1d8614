import threading
from pathlib import Path

import pytest

from magneton.cache import built_once, cache_folder
from magneton.errors import MagnetonError


def test_the_place_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("MAGNETON_CACHE")
    assert cache_folder() == tmp_path / "xdg" / "magneton"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "magneton"


def test_a_folder_is_built_once(tmp_path: Path):
    builds: list[Path] = []

    def build(folder: Path) -> None:
        builds.append(folder)
        (folder / "file").write_text("content")

    for _ in range(2):
        assert (built_once(tmp_path / "thing", build) / "file").read_text() == "content"
    assert len(builds) == 1
    assert builds[0] != tmp_path / "thing"


def test_a_build_that_breaks_leaves_nothing(tmp_path: Path):
    def build(folder: Path) -> None:
        (folder / "half").write_text("made")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        built_once(tmp_path / "thing", build)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_explained(tmp_path: Path):
    def build(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(MagnetonError, match="No space left on device") as caught:
        built_once(tmp_path / "thing", build)
    assert "MAGNETON_CACHE" in caught.value.hint


def test_a_place_that_cannot_be_written_is_explained(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MagnetonError, match="cannot fill the cache"):
        built_once(tmp_path / "file" / "thing", lambda folder: None)


def test_two_builders_at_once_both_get_a_whole_folder(tmp_path: Path):
    both_building = threading.Barrier(2, timeout=5)
    found: list[str] = []

    def build(folder: Path) -> None:
        both_building.wait()
        (folder / "file").write_text("whole")

    def use() -> None:
        found.append((built_once(tmp_path / "thing", build) / "file").read_text())

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["whole", "whole"]
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]
