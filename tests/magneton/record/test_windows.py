"""Windows of a slow sensor: where they begin, when they are read again, what is left without the meter."""

from dataclasses import replace
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from looking import Load, LookingMeter
from torch_steps import ClockMeter, FakeClock

from magneton.meters.meter import Reading
from magneton.profile.model import Doubt
from magneton.record.journal import Rejected
from magneton.record.windows import TRIES, Windows, per_piece, without

HOT = "thermal throttling"


def over(windows: Windows, load: Load, *, piece_s: float = 0.01, told: bool = False) -> Reading:
    """A window over pieces that draw 300 W, tried as often as a block is."""
    return windows.over(
        lambda: load.draw(piece_s, 300.0),
        round(2.5 / piece_s),
        kind="block",
        phase="decode",
        piece_s=piece_s if told else 0.0,
        tries=TRIES,
    )


def test_windows_begin_anywhere_within_a_period_of_the_sensor():
    load = Load()
    windows = Windows(LookingMeter(load), clock=load, seed=3)
    for _ in range(40):
        over(windows, load)
    waited_s = load.slept_s
    assert len(waited_s) == 40
    assert 0 <= min(waited_s) < 0.02 and 0.08 < max(waited_s) < 0.1


def test_the_moments_are_those_of_the_seed():
    def waited_s(seed: int) -> list[float]:
        load = Load()
        windows = Windows(LookingMeter(load), clock=load, seed=seed)
        for _ in range(3):
            over(windows, load)
        return load.slept_s

    assert waited_s(1) == waited_s(1) != waited_s(2)


def test_a_meter_that_tells_no_period_waits_for_nothing():
    clock = FakeClock()
    meter = ClockMeter(clock, shortest_window_s=1.0)
    windows = Windows(meter, clock=clock)
    windows.over(lambda: clock.spend(0.5), 4, kind="block", phase="call")
    windows.single(lambda: clock.spend(0.5))
    assert clock.slept_s == []
    assert [window.duration_s for window in meter.windows] == [2.0, 0.5]


def test_a_window_under_bad_conditions_is_read_again():
    load = Load()
    meter = LookingMeter(load, gaps=[HOT, HOT])
    windows = Windows(meter, clock=load)
    reading = over(windows, load)
    assert reading.energy_j == pytest.approx(300.0 * 2.5) and reading.gap == ""
    assert len(meter.began_s) == 3
    assert windows.take_notes() == [Rejected(kind="block", phase="decode", why=HOT)] * 2
    assert windows.take_notes() == []


def test_after_the_last_try_the_gap_stays_and_every_try_is_told():
    load = Load()
    meter = LookingMeter(load, gaps=[HOT, HOT, "a foreign process", ""])
    windows = Windows(meter, clock=load)
    reading = over(windows, load)
    assert (reading.energy_j, reading.gap) == (None, "a foreign process")
    assert len(meter.began_s) == TRIES
    assert [note.why for note in windows.take_notes() if isinstance(note, Rejected)] == [
        HOT,
        HOT,
        "a foreign process",
    ]


def test_a_window_that_is_too_short_is_not_blamed_on_conditions():
    load = Load()
    meter = LookingMeter(load, gaps=["0.1 s are too short"] * 9)
    windows = Windows(meter, clock=load)
    windows.over(lambda: load.draw(0.1, 300.0), 1, kind="block", phase="call", tries=TRIES)
    assert len(meter.began_s) == 1
    assert windows.take_notes() == []


def test_a_lost_meter_leaves_durations_and_a_reason_and_is_asked_no_more():
    load = Load()
    meter = LookingMeter(load, lost_after=1)
    windows = Windows(meter, clock=load)
    assert over(windows, load).energy_j is not None
    lost, after = over(windows, load), over(windows, load)
    for reading in (lost, after):
        assert reading.energy_j is None
        assert "fallen off the bus" in reading.gap
        assert reading.duration_s == pytest.approx(2.5)
    assert len(meter.began_s) == 2
    (doubt,) = windows.take_notes()
    assert isinstance(doubt, Doubt) and doubt.kind == "meter-lost" and "fallen off the bus" in doubt.text


class HostGone(LookingMeter):
    """Reads its device, and beside it a host that it is not permitted to."""

    def end(self) -> Reading:
        return replace(super().end(), host_gap="no permission")


def test_a_host_that_is_not_read_is_told_of_once():
    load = Load()
    windows = Windows(HostGone(load), clock=load)
    assert over(windows, load).energy_j is not None
    over(windows, load)
    (doubt,) = windows.take_notes()
    assert isinstance(doubt, Doubt) and doubt.kind == "host-not-read" and "no permission" in doubt.text


class SaysSo(LookingMeter):
    """Answers with gaps for ever once its sensor is gone, and says that it is."""

    lost = ""

    def end(self) -> Reading:
        reading = super().end()
        if reading.gap:
            self.lost = reading.gap
        return reading


def test_a_meter_that_says_that_it_is_lost_is_not_tried_again():
    load = Load()
    meter = SaysSo(load, gaps=["GPU is lost"])
    windows = Windows(meter, clock=load)
    assert over(windows, load).gap == "GPU is lost"
    assert len(meter.began_s) == 1
    assert [note.kind for note in windows.take_notes()] == ["meter-lost"]
    assert "GPU is lost" in over(windows, load).gap


def test_idle_power_is_that_of_a_window_at_rest():
    load = Load(idle_w=60.0)
    meter = LookingMeter(load, host_w=20.0)
    windows = Windows(meter, clock=load)
    idle = windows.rest("before", 3.0, now_s=7.0)
    assert meter.began_s[0] >= 1.0  # clocks and voltages have come down
    assert (idle.moment, idle.time_s, idle.duration_s) == ("before", 7.0, pytest.approx(3.0))
    assert idle.power_w == pytest.approx(60.0) and idle.host_power_w == pytest.approx(20.0)
    assert max(load.slept_s) == 3.0


def test_idle_power_that_could_not_be_read_is_none_and_never_zero():
    load = Load()
    windows = Windows(LookingMeter(load, gaps=[HOT] * TRIES), clock=load)
    idle = windows.rest("after", 3.0, now_s=0.0)
    assert (idle.power_w, idle.host_power_w) == (None, None)
    assert [note.kind for note in windows.take_notes()] == ["idle"] * TRIES


def errors(piece_s: float, *, told: bool, count: int = 30) -> list[float]:
    """Of windows over pieces of two halves, 350 W and 100 W, read by a sensor that sees a quarter."""
    load = Load()
    windows = Windows(LookingMeter(load), clock=load, seed=1)
    windows.rest("before", 3.0, now_s=0.0)

    def piece() -> None:
        load.draw(0.4 * piece_s, 350.0)
        load.draw(0.6 * piece_s, 100.0)

    pieces = round(2.5 / piece_s)
    relative: list[float] = []
    for _ in range(count):
        reading = windows.over(piece, pieces, kind="block", phase="call", piece_s=piece_s if told else 0.0)
        assert reading.energy_j is not None
        assert reading.duration_s == pytest.approx(pieces * piece_s)
        relative.append(reading.energy_j / (pieces * piece_s * 200.0) - 1)
    return relative


@pytest.mark.parametrize("piece_s", [0.01, 0.05, 0.1, 0.2])
def test_a_load_in_the_rhythm_of_the_sensor_is_seen_whole(piece_s: float):
    """Its length divides the period or is a multiple of it: without pauses each look sees the same part."""
    locked, paused = errors(piece_s, told=False), errors(piece_s, told=True)
    assert pstdev(locked) > 0.05
    assert pstdev(paused) < 0.02
    assert abs(fmean(paused)) < 0.01


def test_pauses_are_taken_off_the_host_too():
    load = Load()
    meter = LookingMeter(load, host_w=40.0)
    windows = Windows(meter, clock=load)
    windows.rest("before", 3.0, now_s=0.0)
    reading = over(windows, load, piece_s=0.1, told=True)
    assert reading.duration_s == pytest.approx(2.5)
    assert reading.host_energy_j == pytest.approx(40.0 * 2.5)
    assert len(load.slept_s) > 20  # between almost all of the pieces


def test_without_idle_power_nothing_is_paused():
    load = Load()
    windows = Windows(LookingMeter(load), clock=load)
    over(windows, load, piece_s=0.1, told=True)
    assert len(load.slept_s) == 1


def test_idle_power_that_was_not_read_costs_no_window_its_energy():
    load = Load()
    windows = Windows(LookingMeter(load, gaps=[HOT] * TRIES), clock=load)
    windows.rest("before", 3.0, now_s=0.0)
    assert over(windows, load, piece_s=0.1, told=True).energy_j == pytest.approx(750.0)


known = st.floats(0.1, 1e3)
reading = st.builds(
    Reading,
    duration_s=known,
    energy_j=st.none() | known,
    gap=st.sampled_from(["", "spoilt"]),
    host_energy_j=st.none() | known,
)


@given(reading, reading)
def test_what_is_left_is_positive_or_has_a_reason(whole: Reading, part: Reading):
    left = without(whole, part, why="nothing left")
    assert left.duration_s >= 0
    if left.energy_j is not None:
        assert left.energy_j > 0 and left.gap == ""
    elif whole.energy_j is not None and part.energy_j is not None:
        assert left.gap == "nothing left"
    else:
        assert left.gap == whole.gap or part.gap
    assert left.host_energy_j is None or left.host_energy_j > 0


@given(reading, st.integers(1, 9))
def test_pieces_add_up(whole: Reading, pieces: int):
    piece = per_piece(whole, pieces)
    assert piece.duration_s * pieces == pytest.approx(whole.duration_s)
    assert (piece.energy_j is None) == (whole.energy_j is None)
    assert piece.gap == whole.gap
