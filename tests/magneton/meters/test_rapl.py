"""Processors' energy: right across wraps, and None with a reason where a counter cannot be believed."""

from itertools import count
from pathlib import Path
from threading import enumerate as enumerate_threads
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from powercap_tree import RANGE_UJ, PowercapTree, TurnedClock, two_packages

from magneton.meters.clock import SystemClock
from magneton.meters.meter import Meter, Reading
from magneton.meters.powercap import summed_zones
from magneton.meters.rapl import RaplMeter, processor_vendor
from magneton.meters.rollover import Rollover
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.quantity import Provenance

ONE = "intel-rapl:0"


def one_package(root: Path, *, power_w: float = 100.0, **zone: Any) -> PowercapTree:
    tree = PowercapTree(root, TurnedClock())
    tree.add(ONE, "package-0", power_w=power_w, **zone)
    return tree


def opened(tree: PowercapTree, vendor: str = "") -> RaplMeter:
    return RaplMeter(summed_zones(tree.root, tree.read), clock=tree.clock, vendor=vendor)


def window(tree: PowercapTree, meter: Meter, length_s: float = 1.0) -> Reading:
    meter.begin()
    tree.clock.sleep(length_s)
    return meter.end()


def test_a_window_is_the_sum_of_packages_and_memory(tmp_path: Path) -> None:
    tree = two_packages(tmp_path, TurnedClock())

    reading = window(tree, opened(tree), 2.0)

    assert reading.duration_s == pytest.approx(2.0)
    assert reading.energy_j == pytest.approx(2 * 2 * (80.0 + 10.0), rel=2e-3)
    assert reading.gap == ""


def test_windows_follow_each_other_and_what_lies_between_is_in_none(tmp_path: Path) -> None:
    clock = TurnedClock()
    tree = PowercapTree(tmp_path, clock)
    tree.add(ONE, "package-0", power_w=100.0)
    meter = opened(tree)

    window(tree, meter)
    tree.clock.sleep(500.0)
    tree.zones[ONE].draw(tree.clock.now_s(), 50.0)
    second = window(tree, meter)
    meter.close()

    assert second.energy_j == pytest.approx(50.0, rel=5e-3)
    assert clock.watches == []


def test_a_wrap_is_added_up(tmp_path: Path) -> None:
    tree = one_package(tmp_path, offset_uj=RANGE_UJ - 100_000_000)

    reading = window(tree, opened(tree), 3.0)

    assert reading.energy_j == pytest.approx(300.0, rel=2e-3)


def test_an_hour_wraps_many_times_and_each_wrap_is_seen(tmp_path: Path) -> None:
    tree = one_package(tmp_path, power_w=900.0, range_uj=65_712_999_613)

    reading = window(tree, opened(tree), 3600.0)

    assert reading.energy_j == pytest.approx(900.0 * 3600, rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    power_w=st.floats(1.0, 1000.0),
    length_s=st.floats(0.2, 2000.0),
    range_uj=st.integers(10**9, 2**40),
    offset_share=st.floats(0.0, 1.0),
)
def test_energy_is_never_anything_but_the_truth(
    tmp_path_factory: pytest.TempPathFactory,
    power_w: float,
    length_s: float,
    range_uj: int,
    offset_share: float,
) -> None:
    offset_uj = int(offset_share * (range_uj - 1))
    root = tmp_path_factory.mktemp("powercap")
    tree = one_package(root, power_w=power_w, range_uj=range_uj, offset_uj=offset_uj)

    reading = window(tree, opened(tree), length_s)

    assert reading.energy_j == pytest.approx(power_w * length_s, abs=2e-3 * power_w + 1e-5)


def test_a_wrap_of_unknown_range_is_a_gap_and_the_next_window_reads(tmp_path: Path) -> None:
    tree = one_package(tmp_path, offset_uj=RANGE_UJ - 100_000_000, range_shown=False)
    meter = opened(tree)

    wrapped, next_one = window(tree, meter, 3.0), window(tree, meter, 3.0)

    assert wrapped.energy_j is None
    assert wrapped.duration_s == pytest.approx(3.0)
    assert "does not tell its range" in wrapped.gap
    assert next_one.energy_j == pytest.approx(300.0, rel=2e-3)


@pytest.mark.parametrize("looks_between", [True, False])
def test_a_reset_is_no_wrap(tmp_path: Path, looks_between: bool) -> None:
    tree = one_package(tmp_path, offset_uj=50_000_000_000)
    meter = opened(tree)

    meter.begin()
    tree.clock.sleep(30.0 if looks_between else 3.0)
    tree.zones[ONE].reset(tree.clock.now_s())
    tree.clock.sleep(30.0 if looks_between else 3.0)
    reading = meter.end()

    assert reading.energy_j is None
    assert "it was reset" in reading.gap


def test_a_stopped_process_cannot_know_how_often_the_counter_wrapped(tmp_path: Path) -> None:
    clock = TurnedClock()
    tree = PowercapTree(tmp_path, clock)
    tree.add(ONE, "package-0", power_w=300.0)
    meter = opened(tree)

    meter.begin()
    clock.skip(1000.0)
    reading = meter.end()

    assert reading.energy_j is None
    assert "more than once" in reading.gap


def test_a_zone_that_disappears_leaves_gaps_until_it_reads_again(tmp_path: Path) -> None:
    tree = two_packages(tmp_path, TurnedClock())
    meter = opened(tree)

    meter.begin()
    tree.clock.sleep(1.0)
    tree.take_away("intel-rapl:1:0")
    lost = meter.end()
    still_lost = window(tree, meter, 30.0)
    meter.begin()
    tree.bring_back("intel-rapl:1:0")
    tree.clock.sleep(30.0)
    begun_without = meter.end()
    back = window(tree, meter)

    for reading in (lost, still_lost, begun_without):
        assert reading.energy_j is None
        assert "intel-rapl:1:0/energy_uj cannot be read: No such device" in reading.gap
    assert back.energy_j == pytest.approx(2 * 90.0, rel=5e-3)


def test_permission_withdrawn_in_a_run_says_so(tmp_path: Path) -> None:
    tree = one_package(tmp_path)
    meter = opened(tree)
    tree.close_to_users(ONE)

    reading = window(tree, meter)

    assert reading.energy_j is None
    assert "only root may read" in reading.gap


def test_a_counter_that_stops_in_a_run_is_no_zero(tmp_path: Path) -> None:
    tree = one_package(tmp_path)
    meter = opened(tree)
    tree.zones[ONE].draw(tree.clock.now_s(), 0.0)

    reading = window(tree, meter)

    assert reading.energy_j is None
    assert "stood still" in reading.gap


def test_counters_that_never_move_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SensorUnusable, match="do not move"):
        opened(one_package(tmp_path, power_w=0.0))


def test_memory_that_does_not_count_is_left_out_and_named(tmp_path: Path) -> None:
    tree = one_package(tmp_path)
    tree.add("intel-rapl:0:0", "dram", power_w=0.0)
    meter = opened(tree)

    assert window(tree, meter).energy_j == pytest.approx(100.0, rel=5e-3)
    assert "left out, as they do not move: package-0/dram" in meter.info().source


@pytest.mark.parametrize(("period_s", "shortest_s"), [(1e-3, 0.2), (5e-3, 1.0), (0.06, 12.0)])
def test_windows_are_as_long_as_the_counter_is_slow(
    tmp_path: Path, period_s: float, shortest_s: float
) -> None:
    meter = opened(one_package(tmp_path, period_s=period_s))

    assert meter.counter_period_s == pytest.approx(period_s, rel=0.05)
    assert meter.shortest_window_s == pytest.approx(shortest_s, rel=0.05)
    assert meter.info().window_error == pytest.approx(6**-0.5 / 200, rel=0.05)


def test_opening_takes_a_few_milliseconds(tmp_path: Path) -> None:
    tree = two_packages(tmp_path, TurnedClock())
    before_s = tree.clock.now_s()

    opened(tree)

    assert tree.clock.now_s() - before_s < 0.05


def test_a_window_too_short_for_the_counter_is_a_gap(tmp_path: Path) -> None:
    tree = one_package(tmp_path)

    reading = window(tree, opened(tree), 0.05)

    assert reading.energy_j is None
    assert "too short" in reading.gap


def test_the_error_of_windows_is_what_info_says(tmp_path: Path) -> None:
    tree = one_package(tmp_path)
    meter = opened(tree)
    errors: list[float] = []
    for k in range(400):
        tree.clock.sleep(1e-3 * (k * 0.618 % 1))
        energy_j = window(tree, meter, meter.shortest_window_s + 1e-3 * (k * 0.414 % 1)).energy_j
        assert energy_j is not None
        length_s = meter.shortest_window_s + 1e-3 * (k * 0.414 % 1)
        errors.append(energy_j / (100.0 * length_s) - 1)

    deviation = (sum(error * error for error in errors) / len(errors)) ** 0.5

    assert deviation == pytest.approx(meter.info().window_error, rel=0.15)


@pytest.mark.parametrize(
    ("vendor", "low", "high"),
    [("GenuineIntel", 0.95, 1.05), ("AuthenticAMD", 0.8, 1.2), ("", 0.8, 1.2)],
)
def test_info_says_what_is_in_it(tmp_path: Path, vendor: str, low: float, high: float) -> None:
    info = opened(one_package(tmp_path), vendor).info()

    assert (info.name, info.unit, info.provenance) == ("rapl", "J", Provenance.MEASURED)
    assert (info.scale_low, info.scale_high) == pytest.approx((low, high))
    assert "package-0" in info.source
    assert "neighbours" in info.source
    assert "memory is not" in info.source
    assert ("firmware's model" in info.source) == (vendor == "AuthenticAMD")


def test_the_platform_alone_is_said_to_be_that(tmp_path: Path) -> None:
    tree = PowercapTree(tmp_path, TurnedClock())
    tree.add("intel-rapl:0", "psys", power_w=90.0)

    assert "whole platform" in opened(tree).info().source


def test_work_on_a_board_is_refused_with_what_to_do() -> None:
    with pytest.raises(SensorAbsent, match="cuda:0") as refused:
        RaplMeter.open("", "cuda:0")
    assert "nvml" in refused.value.hint


def test_a_machine_is_opened_from_its_files(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: EPYC\n")

    with pytest.raises(SensorAbsent, match="no energy counter"):
        RaplMeter.of_machine(tmp_path, cpuinfo=cpuinfo)
    assert processor_vendor(cpuinfo) == "AuthenticAMD"
    assert processor_vendor(tmp_path / "none") == ""


def test_a_look_that_had_to_wait_for_its_turn_is_no_reset(tmp_path: Path) -> None:
    """The figure was read, and the interpreter then belonged to the work until the window ended."""
    clock = TurnedClock()
    tree = PowercapTree(tmp_path, clock)
    tree.add(ONE, "package-0", power_w=300.0)
    waits_s: list[float] = []

    def read(file: Path) -> bytes:
        content = tree.read(file)
        clock.skip(waits_s.pop() if waits_s else 0.0)
        return content

    counter = Rollover(summed_zones(tree.root, read)[0], clock)
    counter.restart()
    waits_s.append(2.0)
    counter.look()
    counter.look()  # as the window ends

    assert counter.gap == ""
    assert counter.energy_j == pytest.approx(600.0, rel=2e-3)


def test_a_window_that_was_given_up_is_looked_at_no_longer(tmp_path: Path) -> None:
    clock = TurnedClock()
    tree = PowercapTree(tmp_path, clock)
    tree.add(ONE, "package-0", power_w=100.0)
    meter = opened(tree)

    meter.begin()  # and the work failed
    reading = window(tree, meter)

    assert reading.energy_j == pytest.approx(100.0, rel=2e-3)
    assert clock.watches == []


def test_on_the_machine_s_own_clock_no_thread_outlives_its_window(tmp_path: Path) -> None:
    tree = one_package(tmp_path)
    calls = count(1)

    def read(file: Path) -> bytes:
        return b"%d" % (1000 * next(calls)) if file.name == "energy_uj" else tree.read(file)

    meter = RaplMeter(summed_zones(tree.root, read), clock=SystemClock())
    meter.begin()
    watching = [thread.name for thread in enumerate_threads()]
    reading = meter.end()
    meter.begin()
    meter.close()

    assert "magneton-watch" in watching
    assert "magneton-watch" not in [thread.name for thread in enumerate_threads()]
    assert "too short" in reading.gap
