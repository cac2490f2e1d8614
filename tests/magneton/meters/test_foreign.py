"""Whose processes compute on a board: told from a made-up /proc."""

import os
from pathlib import Path

import pytest

from magneton.meters.foreign import Kin, foreign_processes, own_kin

MAGNETON, WORKER, HELPER, OTHER_SIDE, STRANGER, GROUPED = 100, 200, 201, 300, 900, 901


@pytest.fixture
def kin(tmp_path: Path) -> Kin:
    """A worker (200) of magneton (100); its helper, the other side's worker, and somebody from elsewhere."""
    for pid, parent, group in [
        (MAGNETON, 50, 100),
        (WORKER, MAGNETON, 200),
        (HELPER, WORKER, 201),
        (OTHER_SIDE, MAGNETON, 300),
        (STRANGER, 50, 900),
        (GROUPED, 1, 200),
    ]:
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (b) c) S {parent} {group} {group} 0 -1\n")
    return Kin(roots=frozenset({WORKER, MAGNETON}), group=200, proc=tmp_path)


@pytest.mark.parametrize("pid", [WORKER, HELPER, OTHER_SIDE, GROUPED, MAGNETON])
def test_what_magneton_started_is_ours(kin: Kin, pid: int) -> None:
    assert kin.has(pid)
    assert foreign_processes([pid], kin) == 0


def test_others_are_counted(kin: Kin) -> None:
    assert foreign_processes([WORKER, STRANGER], kin) == 1
    assert foreign_processes([STRANGER, OTHER_SIDE, 4711], kin) == 2


def test_pids_of_another_namespace_tell_nothing(kin: Kin) -> None:
    assert foreign_processes([STRANGER, 4711], kin) is None
    assert foreign_processes([], kin) is None


def test_the_drivers_services_are_nobodys_work(kin: Kin) -> None:
    (kin.proc / "777").mkdir()
    (kin.proc / "777" / "stat").write_text("777 (nvidia-cuda-mps) S 1 777 777 0 -1\n")

    assert foreign_processes([WORKER, 777], kin) == 0
    assert foreign_processes([WORKER, 777, STRANGER], kin) == 1


def test_a_file_that_makes_no_sense_is_nobody_of_ours(kin: Kin) -> None:
    (kin.proc / str(STRANGER) / "stat").write_text("gone")

    assert not kin.has(STRANGER)


def test_parents_in_a_circle_come_to_an_end(kin: Kin) -> None:
    (kin.proc / str(STRANGER) / "stat").write_text(f"{STRANGER} (x) S {STRANGER} 900 900")

    assert not kin.has(STRANGER)


def test_this_process_is_its_own_kin() -> None:
    assert own_kin().has(os.getpid())
    assert not own_kin().has(1)
