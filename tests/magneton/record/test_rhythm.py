"""When a sensor that looks at a part of each period sees a load unevenly, and what pausing does about it."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.record.rhythm import LOOK, MOST_PAUSES, UNEVEN, pauses, unevenness

PERIOD_S = 0.1
WINDOW_S = 2.5


def seen_by_hand(piece_s: float, period_s: float, window_s: float) -> float:
    """The same on a fine grid: how much a stretch of a piece is seen above or below its share."""
    cells = 2000
    counts = [0] * cells
    looks = max(1, int(window_s / period_s))
    steps = round(LOOK * period_s / piece_s * cells)
    for look in range(looks):
        start = round(look * period_s / piece_s * cells)
        for cell in range(start, start + steps):
            counts[cell % cells] += 1
    total = sum(counts)
    level, levels = 0.0, [0.0]
    for count in counts:
        level += count / total - 1 / cells
        levels.append(level)
    return max(levels) - min(levels)


@given(piece_s=st.floats(0.02, 0.6))
def test_unevenness_is_that_of_counting_looks(piece_s: float):
    by_hand = seen_by_hand(piece_s, PERIOD_S, WINDOW_S)
    assert unevenness(piece_s, PERIOD_S, WINDOW_S) == pytest.approx(by_hand, abs=0.01)


def test_a_piece_as_long_as_the_period_shows_a_quarter_of_itself():
    assert unevenness(0.1, PERIOD_S, WINDOW_S) == pytest.approx(0.75)


@pytest.mark.parametrize("piece_s", [20e-6, 1e-3, 0.0125, 0.025])
def test_pieces_that_fill_a_look_evenly_need_no_pauses(piece_s: float):
    assert unevenness(piece_s, PERIOD_S, WINDOW_S) < UNEVEN
    assert pauses(piece_s, PERIOD_S, round(WINDOW_S / piece_s), Random(0)) == {}


@given(piece_s=st.floats(1e-3, 0.8), pieces=st.integers(1, 300), seed=st.integers(0, 99))
def test_pauses_shift_by_one_piece_or_one_period_and_no_more(piece_s: float, pieces: int, seed: int):
    paused = pauses(piece_s, PERIOD_S, pieces, Random(seed))
    assert len(paused) <= min(MOST_PAUSES, max(0, pieces - 1))
    assert all(0 < place < pieces and length_s >= 0 for place, length_s in paused.items())
    assert sum(paused.values()) <= min(piece_s, PERIOD_S) * (1 + 1e-9)


def test_a_sensor_that_tells_no_period_needs_none():
    assert pauses(0.1, 0.0, 25, Random(0)) == {}
    assert pauses(0.0, PERIOD_S, 25, Random(0)) == {}


def test_a_sweep_takes_its_steps_at_random_places():
    first, second = (pauses(0.1, PERIOD_S, 25, Random(seed)) for seed in (1, 2))
    assert first.keys() == second.keys()
    assert first != second
    assert len({round(length_s, 9) for length_s in first.values()}) > 10
