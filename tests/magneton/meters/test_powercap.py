"""Which counters are added up: each joule once, and never something that is no counter."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from powercap_tree import PowercapTree, TurnedClock, two_packages

from magneton.meters.powercap import Zone, summed_zones, zone_names
from magneton.meters.sensors import SensorAbsent, SensorUnusable


@pytest.fixture
def tree(tmp_path: Path) -> PowercapTree:
    return PowercapTree(tmp_path, TurnedClock())


def labels(tree: PowercapTree) -> tuple[str, ...]:
    return tuple(zone.label for zone in summed_zones(tree.root, tree.read))


def test_packages_and_their_memory_are_summed_and_neither_parts_nor_platform_nor_mirrors(
    tmp_path: Path,
) -> None:
    tree = two_packages(tmp_path, TurnedClock())

    zones = summed_zones(tree.root, tree.read)

    assert labels(tree) == ("package-0", "package-0/dram", "package-1", "package-1/dram")
    assert not any("mmio" in str(zone.path) for zone in zones)


def test_amd_shows_packages_without_memory(tree: PowercapTree) -> None:
    tree.add("intel-rapl:0", "package-0", power_w=90.0)
    tree.add("intel-rapl:0:0", "core", power_w=9.0)

    assert labels(tree) == ("package-0",)


def test_dies_of_one_package_are_counted_each(tree: PowercapTree) -> None:
    tree.add("intel-rapl:0", "package-0-die-0", power_w=90.0)
    tree.add("intel-rapl:1", "package-0-die-1", power_w=90.0)

    assert labels(tree) == ("package-0-die-0", "package-0-die-1")


def test_the_mirror_is_read_where_there_is_no_other_road(tree: PowercapTree) -> None:
    tree.add("intel-rapl:0", "package-0", power_w=90.0)
    tree.add("intel-rapl-mmio:0", "package-0", power_w=90.0)
    tree.add("intel-rapl-mmio:1", "package-1", power_w=90.0)

    assert labels(tree) == ("package-0", "package-1")


def test_the_platform_alone_is_read_where_no_package_is_shown(tree: PowercapTree) -> None:
    tree.add("intel-rapl:0", "psys", power_w=90.0)

    assert labels(tree) == ("psys",)


def test_ten_packages_come_in_the_order_of_their_numbers(tree: PowercapTree) -> None:
    for package in range(12):
        tree.add(f"intel-rapl:{package}", f"package-{package}", power_w=1.0)

    assert labels(tree) == tuple(f"package-{package}" for package in range(12))


def test_zones_are_found_where_only_their_control_type_is_mounted(tree: PowercapTree) -> None:
    tree.add("intel-rapl:0", "package-0", power_w=90.0, folder="intel-rapl")
    tree.add("intel-rapl:0:0", "dram", power_w=9.0, folder="intel-rapl/intel-rapl:0")

    assert labels(tree) == ("package-0", "package-0/dram")


def test_a_zone_that_two_roads_lead_to_counts_once(tree: PowercapTree) -> None:
    tree.add("intel-rapl:0", "package-0", power_w=90.0, folder="intel-rapl")
    (tree.root / "intel-rapl:0").symlink_to(tree.root / "intel-rapl" / "intel-rapl:0")

    assert labels(tree) == ("package-0",)


def test_names_of_the_zones_by_number(tmp_path: Path) -> None:
    tree = two_packages(tmp_path, TurnedClock())

    assert zone_names(tree.root, tree.read) == {0: "package-0", 1: "package-1", 2: "psys"}


@pytest.mark.parametrize("name", ["", "core", "\x00\xff", "x" * 10_000])
def test_without_a_package_or_platform_the_sensor_is_absent(tree: PowercapTree, name: str) -> None:
    if name:
        tree.add("intel-rapl:0", name, power_w=1.0)

    with pytest.raises(SensorAbsent, match="no energy counter") as refused:
        labels(tree)
    assert "virtual machines" in refused.value.hint


def test_links_that_a_container_runtime_has_cut_are_named(tmp_path: Path) -> None:
    (tmp_path / "intel-rapl:0").symlink_to(tmp_path / "devices" / "virtual" / "powercap" / "intel-rapl:0")

    with pytest.raises(SensorUnusable, match="leads nowhere") as refused:
        summed_zones(tmp_path)
    assert "docker run" in refused.value.hint


def test_closed_counters_name_every_file_the_reason_and_the_command(tmp_path: Path) -> None:
    tree = two_packages(tmp_path, TurnedClock())
    tree.close_to_users("intel-rapl:0", "intel-rapl:1", "intel-rapl:1:0")

    with pytest.raises(SensorUnusable, match="only root may read") as refused:
        labels(tree)

    for part in ("Linux 5.10", "PLATYPUS", "intel-rapl:0/energy_uj", "intel-rapl:1:0/energy_uj"):
        assert part in str(refused.value)
    for part in ("sudo chmod o+r", "udev", "zeusd", "intel-rapl:1/energy_uj"):
        assert part in refused.value.hint


def test_a_counter_that_cannot_be_read_for_another_reason_says_which(tree: PowercapTree) -> None:
    tree.add("intel-rapl:0", "package-0", power_w=1.0)
    tree.take_away("intel-rapl:0")

    with pytest.raises(SensorUnusable, match="energy_uj cannot be read: No such device"):
        labels(tree)


def real_zone(path: Path, content: bytes) -> Zone:
    (path / "energy_uj").write_bytes(content)
    return Zone(path=path, label="package-0", range_uj=None)


@pytest.mark.parametrize(
    "content",
    [b"", b"-5\n", b"1e6", b"0x10", b"12 13", b"\xff\xfe", "\u0663\u0664".encode(), b"9" * 60, b"1" * 10**6],
)
def test_what_is_no_count_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SensorUnusable, match="no count of microjoules"):
        real_zone(tmp_path, content).energy_uj()


@given(value_uj=st.integers(0, 2**64))
def test_a_count_is_read_as_it_stands(tmp_path_factory: pytest.TempPathFactory, value_uj: int) -> None:
    assert real_zone(tmp_path_factory.mktemp("zone"), b"%d\n" % value_uj).energy_uj() == value_uj


def test_a_pipe_in_place_of_a_counter_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "energy_uj")

    with pytest.raises(SensorUnusable, match="not a regular file"):
        Zone(path=tmp_path, label="package-0", range_uj=None).energy_uj()


@pytest.mark.parametrize(("shown", "range_uj"), [(True, 0), (False, 1000)])
def test_a_range_of_nothing_is_not_known(tree: PowercapTree, shown: bool, range_uj: int) -> None:
    tree.add("intel-rapl:0", "package-0", power_w=1.0, range_shown=shown)
    if shown:
        (tree.root / "intel-rapl:0" / "max_energy_range_uj").write_text(f"{range_uj}\n")

    (zone,) = summed_zones(tree.root, tree.read)

    assert zone.range_uj is None
