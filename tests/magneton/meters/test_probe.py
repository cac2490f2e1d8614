"""What a few seconds of watching find out about a board's sensors."""

import pytest
from sensors import CODES, FakeBoard, FakeClock, FakeNvml

from magneton.meters.board import open_board
from magneton.meters.probe import BoardProbe, probe_board
from magneton.meters.sensors import SensorUnusable


def probed(board: FakeBoard, clock: FakeClock | None = None) -> BoardProbe:
    clock = FakeClock() if clock is None else clock
    return probe_board(open_board(FakeNvml(clock, [board]).module(), 0), clock)


@pytest.mark.parametrize("period_s", [0.02, 0.1, 0.25])
def test_a_sound_counter_is_the_source(period_s: float) -> None:
    clock = FakeClock()
    probe = probed(FakeBoard(power_w=80.0, period_s=period_s), clock)

    assert (probe.source, probe.stale, probe.poll_s, probe.fields) == ("counter", False, 1e-3, (186,))
    assert probe.period_s == pytest.approx(period_s, abs=2e-3)
    assert probe.step_j == pytest.approx(80.0 * period_s, rel=0.05)
    assert probe.agreement == pytest.approx(1.0, abs=0.01)
    assert clock.now_s() - 1000.0 < 8.0


def test_a_board_without_instant_power_has_no_agreement() -> None:
    probe = probed(FakeBoard(instant=False))

    assert (probe.source, probe.agreement, probe.fields) == ("counter", None, ())


def test_a_load_that_changes_meanwhile_is_not_taken_for_staleness() -> None:
    clock = FakeClock()
    board = FakeBoard(power_w=60.0)
    waits_s = iter([3.05, 1000.0])

    def settle() -> float:
        wait_s = next(waits_s)
        board.draw(clock, 60.0 if wait_s < 100 else 40.0)
        return wait_s

    module = FakeNvml(clock, [board]).module()
    clock.watch(settle)
    probe = probe_board(open_board(module, 0), clock)

    assert (probe.stale, probe.poll_s) == (False, 1e-3)


def test_sensors_that_disagree_are_told() -> None:
    assert probed(FakeBoard(instant_gain=2.0)).agreement == pytest.approx(2.0, rel=0.02)


def test_a_counter_that_may_be_polled_less_often_is_polled_less_often() -> None:
    probe = probed(FakeBoard(hold_s=0.004))

    assert (probe.source, probe.stale, probe.poll_s) == ("counter", True, 5e-3)


def test_power_stands_in_for_a_counter_that_polling_disturbs() -> None:
    probe = probed(FakeBoard(hold_s=0.5))

    assert (probe.source, probe.stale) == ("power", True)
    assert probe.period_s == pytest.approx(0.1)
    assert probe.agreement == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("board", "text"),
    [
        (FakeBoard(hold_s=0.5, instant=False), "no instantaneous power"),
        (FakeBoard(hold_s=0.5, instant_gain=1.5), "power is 1.5"),
        (FakeBoard(power_w=0.0), "did not change within 3 s"),
        (FakeBoard(power_w=-5.0), "runs backwards"),
        (FakeBoard(energy_error=CODES["NVML_ERROR_NO_PERMISSION"]), "no permission"),
    ],
)
def test_a_counter_that_cannot_be_used_is_an_error_with_advice(board: FakeBoard, text: str) -> None:
    with pytest.raises(SensorUnusable, match=text) as refused:
        probed(board)
    assert refused.value.hint
