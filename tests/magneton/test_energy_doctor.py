"""``magneton doctor`` on simulated boards, as it is typed."""

from pathlib import Path

import pytest
from board_recording import BoardRoom
from simulated_board import A100, H100, RTX_4090, Board, compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")


def told(folder: Path, *boards: Board) -> tuple[str, str]:
    """What is printed and what is said meanwhile, without line breaks."""
    with BoardRoom(folder / "room", *boards) as room:
        left = room.run("doctor")
    assert left.code == 0, left.stderr
    assert max(map(len, left.stdout.splitlines())) <= 80
    return " ".join(left.stdout.split()), left.stderr


def test_a_board_in_slices(tmp_path: Path) -> None:
    text, said = told(tmp_path, Board(shape=A100, mig_slices=3))

    assert "MIG is on, and its slices (up to 7) share one counter" in text
    assert "measured: nothing, there is no sensor that may be read" in text
    assert "--meter auto takes modelled for work on cpu, modelled for work on cuda" in text
    assert said == ""


@pytest.mark.slow
def test_a_board_whose_counter_goes_stale(tmp_path: Path) -> None:
    text, said = told(tmp_path, Board(shape=RTX_4090))

    assert "reads instantaneous power, summed: looking at the energy counter disturbs it" in text
    assert "stale figures when it is read often" in text
    assert "nvml for work on cuda" in text
    assert "probing the sensors of board 0" in said


@pytest.mark.slow
def test_two_unlike_boards(tmp_path: Path) -> None:
    text, said = told(tmp_path, Board(shape=A100), Board(shape=H100))

    assert "nvml, board 0: ratios on one board" in text and "nvml, board 1: ratios on one board" in text
    assert "set CUDA_DEVICE_ORDER=PCI_BUS_ID" in text
    assert "probing the sensors of board 1" in said
