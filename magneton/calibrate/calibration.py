"""Calibrating the device at hand: measure, fit, and put a device file together.

In: a workbench, an open meter, and the devices that ship with magneton. Out: a ``Calibration``: a
``DeviceModel`` whose coefficients are fitted where the readings say what they are, and those of the nearest
shipped device, with its range, where they do not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from magneton.calibrate.device import Row, device_of, fitted_rates
from magneton.calibrate.fit import Fit, Fitted, Observation, fit
from magneton.calibrate.nearest import nearest_device
from magneton.calibrate.plan import benchmarks_for
from magneton.calibrate.trials import Trial, measure
from magneton.calibrate.workbench import LAUNCH, ZEROS, Benchmark, DeviceFacts, Workbench
from magneton.meters.clock import Clock
from magneton.meters.meter import Meter
from magneton.profile.device import DeviceModel
from magneton.profile.origin import MeterInfo
from magneton.record.progress import Progress

TOLERATED = 0.2  # the model's error on its own measurements, beyond which it is doubted
FEWEST = 2  # readings of a benchmark that count


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A benchmark with what was read, medians over its windows, and the model's error there."""

    benchmark: str
    readings: int
    power_w: float
    duration_s: float  # of a window
    error: float  # the model's energy over what was read, less one


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Windows of a benchmark that could not be read although they were tried again."""

    benchmark: str
    windows: int
    of: int
    gap: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """``besides`` are terms that no device file has: what launching costs, and operands that are all zero."""

    device: DeviceModel
    facts: DeviceFacts
    meter: MeterInfo
    nearest: str
    rows: tuple[Row, ...]
    besides: tuple[Fitted, ...]
    explained: tuple[Explained, ...]
    median_error: float
    worst_error: float
    left_out: tuple[LeftOut, ...]
    warnings: tuple[str, ...]
    trials: tuple[Trial, ...]
    seed: int
    calibrated_at: str  # ISO 8601, UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What was measured, however far it came."""

    facts: DeviceFacts
    meter: MeterInfo
    benchmarks: tuple[Benchmark, ...]
    trials: tuple[Trial, ...]
    seed: int


def calibrate(
    workbench: Workbench,
    meter: Meter,
    clock: Clock,
    shipped: Mapping[str, DeviceModel],
    *,
    budget_s: float,
    seed: int,
    progress: Progress,
    keep: Callable[[Readings], None],
) -> Calibration:
    """``keep`` is given what was measured where the work ends early, whatever ended it."""
    facts = workbench.facts()
    benchmarks = benchmarks_for(facts)
    trials: list[Trial] = []
    done = False
    try:
        measure(
            benchmarks, workbench, meter, clock,
            budget_s=budget_s, seed=seed, progress=progress, trials=trials,
        )  # fmt: skip
        calibration = calibrated(_readings(facts, meter, benchmarks, trials, seed), shipped)
        done = True
    finally:
        if trials and not done:
            keep(_readings(facts, meter, benchmarks, trials, seed))
    return calibration


def calibrated(readings: Readings, shipped: Mapping[str, DeviceModel]) -> Calibration:
    """The device that explains the readings."""
    info, moment = readings.meter, datetime.now(UTC).isoformat(timespec="seconds")
    observations = _observations(readings)
    fitted = fit(
        observations,
        seed=readings.seed,
        scale=(info.scale_low, info.scale_high),
        window_error=info.window_error,
    )
    rates = fitted_rates(observations, readings.benchmarks)
    medians = {name: rate.value for name, rate in rates.items() if name != "shortest_kernel_s"}
    name = nearest_device(readings.facts, medians, shipped)
    highest_w = max(each.energy_j / each.duration_s for each in observations)
    fitted_by = f"{readings.facts.name}, {_driver(readings.facts)}, {moment[:10]}, meter {info.name}"
    device, rows = device_of(
        readings.facts, fitted, rates, (name, shipped[name]), highest_w=highest_w, fitted_by=fitted_by
    )
    explained = _explained(observations, fitted)
    worst_error = max((each.error for each in explained), key=abs)
    return Calibration(
        device=device,
        facts=readings.facts,
        meter=info,
        nearest=name,
        rows=rows,
        besides=tuple(each for term, each in fitted.terms.items() if term == LAUNCH or term.endswith(ZEROS)),
        explained=explained,
        median_error=median(abs(each.error) for each in explained),
        worst_error=worst_error,
        left_out=_left_out(readings),
        warnings=_warnings(readings.trials, explained, worst_error),
        trials=readings.trials,
        seed=readings.seed,
        calibrated_at=moment,
    )


def _readings(
    facts: DeviceFacts, meter: Meter, benchmarks: tuple[Benchmark, ...], trials: Sequence[Trial], seed: int
) -> Readings:
    return Readings(facts=facts, meter=meter.info(), benchmarks=benchmarks, trials=tuple(trials), seed=seed)


def _driver(facts: DeviceFacts) -> str:
    return f"driver {facts.driver}" if facts.driver else "no driver"


def _observations(readings: Readings) -> tuple[Observation, ...]:
    """Windows that were read, of benchmarks that were read more than once."""
    amounts = {benchmark.name: benchmark.amounts for benchmark in readings.benchmarks}
    read = [trial for trial in readings.trials if trial.energy_j is not None and trial.energy_j > 0]
    counted = [trial.benchmark for trial in read]
    return tuple(
        Observation(
            benchmark=trial.benchmark,
            duration_s=trial.duration_s,
            energy_j=trial.energy_j or 0.0,
            amounts={term: count * trial.repetitions for term, count in amounts[trial.benchmark].items()},
        )
        for trial in read
        if counted.count(trial.benchmark) >= FEWEST
    )


def _explained(observations: Sequence[Observation], fitted: Fit) -> tuple[Explained, ...]:
    rows: list[Explained] = []
    for name in dict.fromkeys(each.benchmark for each in observations):
        of_it = [k for k, each in enumerate(observations) if each.benchmark == name]
        rows.append(
            Explained(
                benchmark=name,
                readings=len(of_it),
                power_w=median(observations[k].energy_j / observations[k].duration_s for k in of_it),
                duration_s=median(observations[k].duration_s for k in of_it),
                error=median(fitted.errors[k] for k in of_it),
            )
        )
    return tuple(sorted(rows, key=lambda row: row.power_w))


def _left_out(readings: Readings) -> tuple[LeftOut, ...]:
    rows: list[LeftOut] = []
    for benchmark in readings.benchmarks:
        windows = [trial for trial in readings.trials if trial.benchmark == benchmark.name]
        unread = [trial for trial in windows if trial.energy_j is None]
        if unread:
            rows.append(
                LeftOut(benchmark=benchmark.name, windows=len(unread), of=len(windows), gap=unread[-1].gap)
            )
    return tuple(rows)


def _warnings(trials: Sequence[Trial], explained: Sequence[Explained], worst_error: float) -> tuple[str, ...]:
    found: list[str] = []
    if abs(worst_error) > TOLERATED:
        worst = max(explained, key=lambda each: abs(each.error))
        found.append(
            f"the model misses {worst.benchmark!r} by {worst_error:+.0%}: this device does not follow it "
            "there, or something else ran on it; its joules are worth no more than that"
        )
    throttled = sorted({reason for trial in trials for reason in trial.throttle})
    if throttled:
        count = sum(bool(trial.throttle) for trial in trials)
        found.append(
            f"clocks were held down in {count} of {len(trials)} windows ({', '.join(throttled)}): "
            "coefficients are those of a device that is held back"
        )
    if any(trial.foreign for trial in trials):
        found.append("others used the device meanwhile, and what they spent is in the coefficients")
    return tuple(found)
