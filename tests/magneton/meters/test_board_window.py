"""One board's window on the machine's own clock: looks come from a thread that ends with the window."""

import threading
import time

from sensors import FakeBoard, FakeNvml

from magneton.meters.board import open_board
from magneton.meters.board_window import BoardWindow
from magneton.meters.clock import SystemClock
from magneton.meters.foreign import own_kin
from magneton.meters.probe import BoardProbe

PROBE = BoardProbe(
    period_s=0.02,
    step_j=6.0,
    poll_s=1e-3,
    fields=(186,),
    agreement=1.0,
    noise=0.0,
    stale=False,
    source="counter",
    probed_at="2030-01-01T00:00:00+00:00",
)


def test_a_thread_looks_while_work_goes_on() -> None:
    clock = SystemClock()
    nvml = FakeNvml(clock, [FakeBoard(power_w=300.0, period_s=0.02)])
    window = BoardWindow(open_board(nvml.module(), 0), PROBE, clock, own_kin())
    threads = threading.active_count()

    window.open(pieces=1000)
    began_s = clock.now_s()
    time.sleep(0.4)
    ended_s = clock.now_s()
    reading = window.close(began_s, ended_s, pieces=1000, shortest_s=0.4)

    assert threading.active_count() == threads
    assert nvml.reads > 3
    assert reading.duration_s >= 0.4
    assert (reading.energy_j is None) == bool(reading.gap)
    assert reading.energy_j is None or 100 < reading.energy_j / reading.duration_s < 900
