"""What a board tells of its condition; what it does not tell is None and stops nothing."""

import os

import pytest
from sensors import CODES, FakeBoard, FakeClock, FakeNvml

from magneton.meters.board import Board, open_board
from magneton.meters.board_state import read_state, throttle_reasons
from magneton.meters.foreign import own_kin
from magneton.meters.meter import State


def opened(board: FakeBoard, *without: str) -> Board:
    return open_board(FakeNvml(FakeClock(), [board]).module(*without), 0)


def test_figures_are_si_and_names_are_for_people() -> None:
    state = read_state(
        opened(FakeBoard(temperature_c=63, clock_mhz=1410, reasons=0x1 | 0x4 | 0x40)), own_kin()
    )

    assert state == State(
        temperature_c=63.0, clock_hz=1.41e9, throttle=("sw-power-cap", "hw-thermal"), foreign=0
    )


def test_a_thermometer_that_is_not_there_is_none() -> None:
    state = read_state(opened(FakeBoard(temperature_c=None)), own_kin())

    assert state.temperature_c is None
    assert state.clock_hz == 1.41e9


@pytest.mark.parametrize("code", ["NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_GPU_IS_LOST"])
def test_a_board_that_tells_nothing_has_a_state_all_the_same(code: str) -> None:
    assert read_state(opened(FakeBoard(state_error=CODES[code])), own_kin()) == State()


def test_bindings_older_than_the_new_name_are_asked_by_the_old_one() -> None:
    board = FakeBoard(reasons=0x20)

    assert throttle_reasons(opened(board, "nvmlDeviceGetCurrentClocksEventReasons")) == ("sw-thermal",)
    neither = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    assert throttle_reasons(opened(board, *neither)) == ()


def test_a_reason_that_nobody_knows_yet_is_told() -> None:
    assert throttle_reasons(opened(FakeBoard(reasons=0x2000 | 0x8))) == ("hw-slowdown", "reason-0x2000")


def test_other_processes_are_counted() -> None:
    assert read_state(opened(FakeBoard(pids=(os.getpid(), 1, 2))), own_kin()).foreign == 2
    assert read_state(opened(FakeBoard(pids=(1, 2))), own_kin()).foreign is None
