"""RAPL's zones, what is summed, who may read them; and the clock of the CPU's model."""

from pathlib import Path

import pytest
from looked_at import bare_machine, sensor
from powercap_tree import PowercapTree, TurnedClock

from magneton.doctor import Check, Surroundings, examine


def with_zones(folder: Path, *, platform: bool = False, forbidden: bool = False) -> Surroundings:
    clock = TurnedClock()
    tree = PowercapTree(folder, clock)
    tree.add("intel-rapl:0", "package-0", power_w=50.0)
    tree.add("intel-rapl:0:0", "core", power_w=30.0)
    tree.add("intel-rapl:0:1", "dram", power_w=10.0)
    if platform:
        tree.add("intel-rapl:1", "psys", power_w=90.0)
    if forbidden:
        tree.close_to_users(*tree.zones)
    return bare_machine(folder, powercap=tree.root, read_file=tree.read, clock=clock)


def rapl(around: Surroundings) -> Check:
    return sensor(examine(around), "rapl")


def test_zones_are_summed_once_and_said(tmp_path: Path) -> None:
    check = rapl(with_zones(tmp_path, platform=True))

    assert check.state == "ok"
    assert check.detail.startswith("summed: package-0, package-0/dram; left out: psys")
    assert check.now is not None
    assert check.now.power_w == pytest.approx(60.0, rel=0.1)
    assert check.shortest_window_s == pytest.approx(0.2)


def test_the_step_is_power_times_period(tmp_path: Path) -> None:
    check = rapl(with_zones(tmp_path))

    assert check.update_period_s is not None
    assert check.resolution_j == pytest.approx(60.0 * check.update_period_s, rel=0.1)


def test_it_is_what_auto_takes_for_the_processor(tmp_path: Path) -> None:
    diagnosis = examine(with_zones(tmp_path))

    assert diagnosis.meters == {"cpu": "rapl"}
    assert diagnosis.meter == "rapl"
    assert diagnosis.trust[0].startswith("rapl: ")


def test_counters_for_root_only_come_with_the_command_that_opens_them(tmp_path: Path) -> None:
    check = rapl(with_zones(tmp_path, forbidden=True))

    assert check.state == "unusable"
    assert "sudo chmod o+r " in check.advice
    assert "intel-rapl:0/energy_uj" in check.advice


def test_the_cpu_clock_is_fine_enough_here(tmp_path: Path) -> None:
    clock = sensor(examine(bare_machine(tmp_path)), "cpu clock")

    assert clock.update_period_s is not None
    assert clock.resolution_j == pytest.approx(5.0 * clock.update_period_s)
