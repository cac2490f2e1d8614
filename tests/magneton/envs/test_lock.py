import threading
from pathlib import Path

import pytest

from magneton.envs.lock import InUse, locked
from magneton.errors import MagnetonError


def test_many_may_use_at_once_but_only_one_may_change(tmp_path: Path) -> None:
    lock = tmp_path / "toy.lock"
    with (
        locked(lock, shared=True),
        locked(lock, shared=True),
        pytest.raises(InUse, match="toy is in use"),
        locked(lock, shared=False),
    ):
        pytest.fail("two hold it")
    with locked(lock, shared=False), pytest.raises(InUse), locked(lock, shared=True):
        pytest.fail("two hold it")
    with locked(lock, shared=False):
        pass


def test_who_waits_says_so_and_gets_the_lock_that_is_there_then(tmp_path: Path) -> None:
    lock = tmp_path / "toy.lock"
    waits, got = threading.Event(), threading.Event()

    def wait() -> None:
        with locked(lock, shared=False, waiting=waits.set):
            got.set()
            assert lock.exists()

    with locked(lock, shared=False):
        thread = threading.Thread(target=wait)
        thread.start()
        assert waits.wait(10)
        assert not got.is_set()
        lock.unlink()  # as a removal does: the file that is waited for is no lock any more
    thread.join(10)

    assert got.is_set()
    assert lock.exists()


def test_a_folder_that_cannot_be_written_is_the_users_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MagnetonError, match="cannot lock"), locked(tmp_path / "file" / "l", shared=True):
        pytest.fail("there is no lock")
