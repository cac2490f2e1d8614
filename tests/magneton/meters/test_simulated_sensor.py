"""What the sensor of a simulated board adds to the truth: noise, blind spots, stale reads, lost energy."""

from collections.abc import Iterator

import pytest
from simulated_board import (
    RTX_4090,
    Board,
    Host,
    Work,
    build_library,
    compiler,
    environment,
)
from simulated_reads import STILL, counter_j, field, opened

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host(environment(build_library())) as found:
        yield found


def noisy(seed: int) -> list[float]:
    simulation, (handle,) = opened(Board(shape=STILL, noise_w=2.0, jitter_s=0.02), seed=seed)
    powers_w: list[float] = []
    for _ in range(400):
        simulation.sleep(0.1)
        powers_w.append(field(handle, 186)[1] * 1e-3)
    return powers_w


def test_noise_is_the_seeds_and_has_its_size(host: Host) -> None:
    powers_w = host.call(noisy, seed=5)

    assert powers_w == host.call(noisy, seed=5) != host.call(noisy, seed=6)
    mean_w = sum(powers_w) / len(powers_w)
    assert mean_w == pytest.approx(80.0, abs=0.5)
    assert (sum((each - mean_w) ** 2 for each in powers_w) / len(powers_w)) ** 0.5 == pytest.approx(
        2.0, rel=0.2
    )


def duty_cycled() -> list[float]:
    shares: list[float] = []
    for counter in ("integral", "sampled"):
        simulation, (handle,) = opened(Board(shape=STILL, counter=counter))  # pyright: ignore[reportArgumentType] - the two there are
        before_j, true_j = counter_j(handle), simulation.true_energy_j(0)
        simulation.run(0, Work(busy_w=400.0, busy_s=0.05, gap_s=0.05), times=200)  # in step with the ticks
        shares.append((counter_j(handle) - before_j) / (simulation.true_energy_j(0) - true_j))
    return shares


def test_a_counter_of_published_power_misses_what_the_boxcar_misses(host: Host) -> None:
    integral, sampled = host.call(duty_cycled)

    assert integral == pytest.approx(1.0, abs=0.01)
    assert sampled == pytest.approx(80 / 240, abs=0.02)  # every boxcar lies in a gap


def polled(interval_s: float) -> float:
    simulation, (handle,) = opened(Board(shape=RTX_4090))
    before_j, true_j = counter_j(handle), simulation.true_energy_j(0)
    for _ in range(int(60 / interval_s)):
        simulation.sleep(interval_s)
        counter_j(handle)
    return 1 - (counter_j(handle) - before_j) / (simulation.true_energy_j(0) - true_j)


@pytest.mark.parametrize(("interval_s", "lost"), [(5e-4, 0.95), (0.01, 0.76), (0.1, 0.13), (1.0, 0.016)])
def test_a_counter_read_too_often_falls_short_as_published(
    host: Host, interval_s: float, lost: float
) -> None:
    assert host.call(polled, interval_s=interval_s) == pytest.approx(lost, abs=0.045)


def held(hold_loses: bool, interval_s: float) -> list[float]:
    simulation, (handle,) = opened(Board(shape=STILL, hold_s=0.15, hold_loses=hold_loses))
    before_j = counter_j(handle)
    seen_j: list[float] = []
    for _ in range(round(10 / interval_s)):
        simulation.sleep(interval_s)
        seen_j.append(counter_j(handle) - before_j)
    simulation.sleep(1.0)
    return [max(seen_j), counter_j(handle) - before_j]


def test_a_held_counter_stands_still_while_it_is_polled(host: Host) -> None:
    assert host.call(held, hold_loses=False, interval_s=0.01) == pytest.approx([0.0, 880.0], abs=10)
    assert host.call(held, hold_loses=True, interval_s=0.01) == pytest.approx([0.0, 80.0], abs=10)
    assert host.call(held, hold_loses=True, interval_s=0.2) == pytest.approx([800.0, 880.0], abs=10)
