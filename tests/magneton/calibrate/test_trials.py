"""Windows: warmed up, long enough, in random order, tried again, and kept as they are read."""

from collections import Counter
from itertools import groupby

import pytest
from planted_device import FACTS, PlantedDevice, PlantedMeter, repetition_s

from magneton.calibrate.plan import benchmarks_for
from magneton.calibrate.trials import LEAST_ROUNDS, MOST_ROUNDS, Trial, measure, needed_s
from magneton.calibrate.workbench import Benchmark
from magneton.errors import MagnetonError
from magneton.meters.meter import Reading
from magneton.meters.sensors import SensorUnusable
from magneton.record.progress import NoProgress

BENCHMARKS = benchmarks_for(FACTS)
NAMES = [benchmark.name for benchmark in BENCHMARKS]


def measured(
    meter: PlantedMeter, *, budget_s: float | None = None, seed: int = 0, trials: list[Trial] | None = None
) -> list[Trial]:
    kept: list[Trial] = [] if trials is None else trials
    measure(
        BENCHMARKS,
        meter.device,
        meter,
        meter.device.clock,
        budget_s=LEAST_ROUNDS * needed_s(BENCHMARKS, meter) if budget_s is None else budget_s,
        seed=seed,
        progress=NoProgress(),
        trials=kept,
    )
    return kept


def planted() -> PlantedMeter:
    return PlantedMeter(device=PlantedDevice())


def test_every_benchmark_has_as_many_windows_as_there_are_rounds() -> None:
    trials = measured(planted())

    assert Counter(trial.benchmark for trial in trials) == dict.fromkeys(NAMES, LEAST_ROUNDS)
    assert all(trial.energy_j is not None and trial.gap == "" for trial in trials)


def test_windows_are_as_long_as_the_meter_needs_and_little_longer() -> None:
    meter = planted()
    longest_s = max(repetition_s(benchmark) for benchmark in BENCHMARKS)

    for trial in measured(meter):
        assert meter.shortest_window_s <= trial.duration_s <= 1.1 * meter.shortest_window_s + 2 * longest_s


def test_rounds_have_orders_of_their_own_which_the_seed_decides() -> None:
    once, again, other = measured(planted()), measured(planted()), measured(planted(), seed=1)

    orders = [[t.benchmark for t in round] for _, round in groupby(once, key=lambda trial: trial.round)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]) == sorted(NAMES)
    assert [trial.benchmark for trial in once] == [trial.benchmark for trial in again]
    assert [trial.benchmark for trial in once] != [trial.benchmark for trial in other]


class WatchedDevice(PlantedDevice):
    """Remembers how much of which benchmark ran since the last window."""

    def __init__(self) -> None:
        super().__init__()
        self.lately: list[tuple[str, float]] = []

    def run(self, benchmark: Benchmark, repetitions: int) -> None:
        super().run(benchmark, repetitions)
        self.lately.append((benchmark.name, repetitions * repetition_s(benchmark)))


class WatchingMeter(PlantedMeter):
    """Checks, when a window is opened, that what ran last was a warm-up of what is about to run."""

    warmed: int = 0
    warm: tuple[str, float] = ("", 0.0)

    def begin(self, pieces: int = 1) -> None:
        assert isinstance(self.device, WatchedDevice)
        self.warm = self.device.lately[-1]
        super().begin(pieces)

    def end(self) -> Reading:
        assert isinstance(self.device, WatchedDevice)
        name, warm_s = self.warm
        assert self.device.lately[-1][0] == name and warm_s >= 0.9
        self.warmed += 1
        return super().end()


def test_a_window_follows_a_warm_up_by_the_same_work() -> None:
    meter = WatchingMeter(device=WatchedDevice())

    trials = measured(meter)

    assert meter.warmed == len(trials)


def test_a_longer_budget_gives_more_rounds_up_to_a_limit() -> None:
    meter = planted()
    round_s = needed_s(BENCHMARKS, meter)

    assert len(measured(planted(), budget_s=5.5 * round_s)) == 5 * len(BENCHMARKS)
    assert len(measured(planted(), budget_s=1000 * round_s)) == MOST_ROUNDS * len(BENCHMARKS)


def test_the_work_stays_within_its_budget() -> None:
    meter = planted()
    budget_s = 4.2 * needed_s(BENCHMARKS, meter)

    measured(meter, budget_s=budget_s)

    assert meter.device.clock.now_s() <= 1.15 * budget_s


def test_a_budget_that_is_too_short_is_refused_before_anything_runs() -> None:
    meter = planted()

    with pytest.raises(MagnetonError, match="budget of 60 s") as raised:
        measured(meter, budget_s=60)

    assert raised.value.hint.startswith("--budget ")
    asked_s = float(raised.value.hint.split()[1])
    assert asked_s >= LEAST_ROUNDS * needed_s(BENCHMARKS, meter)
    assert meter.device.clock.now_s() == 0.0


def test_a_gap_is_tried_again_twice() -> None:
    meter = PlantedMeter(device=PlantedDevice(), gap=lambda window: "a gap" if window in (5, 6) else "")

    trials = measured(meter)

    assert all(trial.energy_j is not None for trial in trials)
    assert meter.windows == len(trials) + 2


def test_a_window_that_is_never_read_says_why() -> None:
    meter = PlantedMeter(device=PlantedDevice(), gap=lambda window: "a gap" if window in (5, 6, 7) else "")

    trials = measured(meter)

    (unread,) = [trial for trial in trials if trial.energy_j is None]
    assert unread.gap == "a gap"
    assert meter.windows == len(trials) + 2


@pytest.mark.parametrize("end", [KeyboardInterrupt(), SensorUnusable("the board is lost", hint="")])
def test_what_was_read_before_the_end_is_kept(end: BaseException) -> None:
    trials: list[Trial] = []
    meter = PlantedMeter(device=PlantedDevice(), breaks={8: end})

    with pytest.raises(type(end)):
        measured(meter, trials=trials)

    assert len(trials) == 7


def test_what_the_device_was_like_is_kept() -> None:
    meter = PlantedMeter(device=PlantedDevice(), throttle=("hw-thermal",), foreign=2)

    (trial, *_) = measured(meter)

    assert (trial.throttle, trial.foreign) == (("hw-thermal",), 2)


def test_a_sensor_that_is_gone_ends_the_work() -> None:
    trials: list[Trial] = []
    meter = PlantedMeter(device=PlantedDevice(), gap=lambda window: "lost" if window > 10 else "")

    with pytest.raises(SensorUnusable, match=r"4 benchmarks .* lost"):
        measured(meter, trials=trials)

    assert [trial.energy_j is None for trial in trials] == [False] * 10 + [True] * 4
