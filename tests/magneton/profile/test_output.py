"""The output is made sure of first and appears whole or not at all."""

import errno
import os
import resource
import stat
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from profiles import same_profile, small_profile

from magneton.errors import MagnetonError
from magneton.profile.output import cannot_write, reserve
from magneton.profile.store import load, save, save_into


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@contextmanager
def largest_file(size_bytes: int) -> Generator[None]:
    """Files of this process may not grow beyond ``size_bytes``: a disk that fills up while writing."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_was_there_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "p.mgn"
    path.write_bytes(b"what was there before" * 10_000)
    save(small_profile(), path)
    assert same_profile(load(path), small_profile())
    assert names_in(tmp_path) == ["p.mgn"]


def test_the_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    save(small_profile(), tmp_path / "p.mgn")
    (tmp_path / "ordinary").touch()
    assert stat.S_IMODE((tmp_path / "p.mgn").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "ordinary").stat().st_mode
    )


def test_a_reserved_output_holds_its_room_and_ends_without_it(tmp_path: Path) -> None:
    path = tmp_path / "p.mgn"
    with reserve(path, room_bytes=100_000) as output:
        (held,) = tmp_path.iterdir()
        assert held.stat().st_size == 100_000
        assert not path.exists()
        save_into(output, small_profile())
    save(small_profile(), tmp_path / "directly.mgn")
    assert path.read_bytes() == (tmp_path / "directly.mgn").read_bytes()


def test_nothing_is_left_of_a_measurement_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "p.mgn"
    path.write_bytes(b"kept")
    with pytest.raises(KeyboardInterrupt), reserve(path):
        raise KeyboardInterrupt
    assert names_in(tmp_path) == ["p.mgn"]
    assert path.read_bytes() == b"kept"


def test_a_name_of_the_longest_length_is_fine(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 251 + ".mgn")
    save(small_profile(), path)
    load(path)


def test_unwritable_places_are_found_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (
        tmp_path / "no" / "such" / "folder.mgn",
        tmp_path / "file" / "below.mgn",
        tmp_path,
        Path("/dev/null"),
        Path("/dev/full"),
        tmp_path / ("n" * 300),
        Path("/proc/p.mgn"),
    ):
        with pytest.raises(MagnetonError, match="cannot write") as caught, reserve(path):
            pytest.fail(f"{path} was reserved")
        assert caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_found_at_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(MagnetonError, match="Permission denied") as caught, reserve(tmp_path / "p.mgn"):
        pytest.fail("reserved")
    assert "may write" in caught.value.hint


def test_a_disk_without_room_is_found_before_the_measurement(tmp_path: Path) -> None:
    with (
        largest_file(50_000),
        pytest.raises(MagnetonError, match="cannot write") as caught,
        reserve(tmp_path / "p.mgn", room_bytes=100_000),
    ):
        pytest.fail("measured")
    assert "free some space" in caught.value.hint
    assert names_in(tmp_path) == []


def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "p.mgn"
    path.write_bytes(b"kept")
    with largest_file(2_000), pytest.raises(MagnetonError, match="cannot write") as caught:
        save(small_profile(), path)
    assert "free some space" in caught.value.hint
    assert names_in(tmp_path) == ["p.mgn"]
    assert path.read_bytes() == b"kept"


@pytest.fixture
def full_disk(tmp_path: Path) -> Generator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mounting, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root with the right to mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_really_full_disk_is_found_before_the_measurement(full_disk: Path) -> None:
    with (
        pytest.raises(MagnetonError, match="No space left on device") as caught,
        reserve(full_disk / "p.mgn"),
    ):
        pytest.fail("measured")
    assert "free some space" in caught.value.hint
    assert names_in(full_disk) == []
    save(small_profile(), full_disk / "small.mgn")
    load(full_disk / "small.mgn")


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EACCES, "may write"),
        (errno.EROFS, "may write"),
        (errno.ENOENT, "has to exist"),
    ],
)
def test_the_hint_says_what_to_do(code: int, advice: str) -> None:
    error = cannot_write(Path("p.mgn"), OSError(code, os.strerror(code)))
    assert str(error) == f"cannot write p.mgn: {os.strerror(code)}"
    assert advice in error.hint
