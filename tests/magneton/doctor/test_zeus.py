"""Zeus is asked only where it could see what nothing else does."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from looked_at import INSTALLED, bare_machine, sensor

from magneton.doctor import Check, examine
from magneton.meters.meter import Meter, Reading
from magneton.meters.sensors import SensorUnusable
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance


@dataclass(slots=True)
class Seen:
    """A meter of what Zeus sees; knows whether it was closed."""

    shortest_window_s: float = 2.0
    closed: bool = False

    def info(self) -> MeterInfo:
        return MeterInfo(
            name="zeus",
            unit="J",
            provenance=Provenance.MEASURED,
            scale_high=1.05,
            source="AMD MI300X (board 0)",
        )

    def begin(self, pieces: int = 1) -> None:
        del pieces

    def end(self) -> Reading:
        return Reading(duration_s=2.0, energy_j=None)

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        self.closed = True


def never(device: str) -> Meter:
    raise AssertionError(f"zeus was loaded for {device}")


def zeus(folder: Path, versions: dict[str, str] | None = None, **changes: Any) -> Check:
    found = INSTALLED if versions is None else versions
    return sensor(examine(bare_machine(folder, found, **({"open_zeus": never} | changes))), "zeus")


def test_without_a_trace_it_is_not_loaded(tmp_path: Path) -> None:
    assert zeus(tmp_path).state == "absent"
    assert "no trace" in zeus(tmp_path).detail


def test_a_board_of_amd_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").write_text("")
    meter, asked = Seen(), list[str]()

    def opened(device: str) -> Meter:
        asked.append(device)
        return meter

    check = zeus(tmp_path, open_zeus=opened)

    assert check.state == "ok"
    assert asked == ["cuda:0"]
    assert check.reads == "AMD MI300X (board 0)"
    assert check.shortest_window_s == 2.0
    assert meter.closed


def test_what_it_refuses_is_told(tmp_path: Path) -> None:
    def refused(device: str) -> Meter:
        raise SensorUnusable(f"no token for {device}", hint="set ZEUSD_TOKEN")

    check = zeus(tmp_path, open_zeus=refused, environment={"ZEUSD_SOCK_PATH": "/run/zeusd.sock"})

    assert check.state == "unusable"
    assert "zeusd (ZEUSD_SOCK_PATH) found, and yet: no token for cpu" in check.detail
    assert check.advice == "set ZEUSD_TOKEN"


@pytest.mark.parametrize(
    ("changes", "trace"), [({"operating_system": ("darwin", "arm64")}, "an Apple chip"), ({}, "a Jetson")]
)
def test_systems_on_a_chip_are_found_and_advised(tmp_path: Path, changes: dict[str, Any], trace: str) -> None:
    if not changes:
        (tmp_path / "nv_tegra_release").write_text("# R36")

    check = zeus(tmp_path, {"torch": "2.13.0"}, **changes)

    assert check.state == "absent"
    assert trace in check.detail
    assert check.advice == "pip install 'magneton[zeus]'"


def test_two_packages_of_one_import_name_are_unusable(tmp_path: Path) -> None:
    check = zeus(tmp_path, INSTALLED | {"zeus-ml": "0.11.0"})

    assert check.state == "unusable"
    assert "pip uninstall zeus-ml zeus" in check.advice
