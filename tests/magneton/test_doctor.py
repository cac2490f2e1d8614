"""Every sensor is ok, absent or unusable, with what to do about it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sensors import CODES, FakeBoard, FakeClock, FakeNvml

from magneton.doctor import Check, Diagnosis, Surroundings, examine
from magneton.meters.sensors import SensorAbsent, SensorUnusable


def no_nvml() -> Any:
    raise SensorAbsent("the package nvidia-ml-py is not installed", hint="pip install nvidia-ml-py")


def shadowed_nvml() -> Any:
    raise SensorUnusable("the package pynvml shadows nvidia-ml-py", hint="pip uninstall pynvml")


def nobody_may_read(path: Path) -> bool:
    return not path.exists()


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    """A machine without sensors."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: A Processor @ 2 GHz\n")
    return Surroundings(
        nvml=no_nvml,
        powercap=tmp_path / "powercap",
        cpuinfo=cpuinfo,
        cache=lambda: tmp_path / "cache" / "magneton",
        load_1min=lambda: 0.0,
    )


def with_boards(around: Surroundings, *boards: FakeBoard, init_error: int | None = None) -> Surroundings:
    clock = FakeClock()
    module = FakeNvml(clock, boards, init_error).module()
    return replace(around, nvml=lambda: module, clock_s=clock.read_s, sleep=clock.sleep)


def sensor(diagnosis: Diagnosis, name: str) -> Check:
    (found,) = (check for check in diagnosis.sensors if check.name == name)
    return found


def machine(diagnosis: Diagnosis, name: str) -> Check:
    (found,) = (check for check in diagnosis.machine if check.name == name)
    return found


def test_a_machine_without_sensors_says_so_and_what_is_left(around: Surroundings) -> None:
    diagnosis = examine(around)

    assert sensor(diagnosis, "nvml").state == "absent"
    assert sensor(diagnosis, "rapl").state == "absent"
    assert diagnosis.meter == "modelled"
    assert diagnosis.trust[0] == "measured: nothing, there is no sensor that may be read"


def test_a_board_is_probed(around: Surroundings) -> None:
    diagnosis = examine(with_boards(around, FakeBoard(power_w=70.0, period_s=0.1)))

    board = sensor(diagnosis, "nvml, board 0")
    assert board.state == "ok"
    assert board.update_period_s == pytest.approx(0.1, rel=0.02)
    assert board.resolution_j == pytest.approx(7.0, rel=0.02)
    assert "NVIDIA Fake, driver 600.1; 70 W" in board.detail
    assert diagnosis.meter == "nvml"


def test_each_board_has_its_own_state(around: Surroundings) -> None:
    deaf = FakeBoard(energy_error=CODES["NVML_ERROR_NOT_SUPPORTED"])

    diagnosis = examine(with_boards(around, deaf, FakeBoard(instant=False)))

    assert sensor(diagnosis, "nvml, board 0").state == "unusable"
    assert sensor(diagnosis, "nvml, board 1").state == "ok"
    assert "no instantaneous power" in sensor(diagnosis, "nvml, board 1").detail


@pytest.mark.parametrize(
    ("code", "state"), [("NVML_ERROR_DRIVER_NOT_LOADED", "absent"), ("NVML_ERROR_NO_PERMISSION", "unusable")]
)
def test_a_driver_that_refuses(around: Surroundings, code: str, state: str) -> None:
    check = sensor(examine(with_boards(around, init_error=CODES[code])), "nvml")

    assert check.state == state
    assert check.advice


def test_a_driver_without_boards_is_absent(around: Surroundings) -> None:
    assert sensor(examine(with_boards(around)), "nvml").detail == "the driver knows no board"


def test_the_wrong_bindings_are_a_line_and_not_a_crash(around: Surroundings) -> None:
    check = sensor(examine(replace(around, nvml=shadowed_nvml)), "nvml")

    assert (check.state, check.advice) == ("unusable", "pip uninstall pynvml")


def test_readable_counters_of_the_processor_are_ok(around: Surroundings) -> None:
    zone = around.powercap / "intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "energy_uj").write_text("123\n")

    diagnosis = examine(around)

    assert sensor(diagnosis, "rapl").state == "ok"
    assert diagnosis.trust[0].startswith("zeus:")


def test_counters_for_root_only_are_unusable(around: Surroundings) -> None:
    zone = around.powercap / "intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "energy_uj").write_text("123\n")

    check = sensor(examine(replace(around, readable=nobody_may_read)), "rapl")

    assert check.state == "unusable"
    assert "administrator" in check.advice


def test_the_processor_is_named(around: Surroundings) -> None:
    assert machine(examine(around), "processor").detail.startswith("A Processor @ 2 GHz, ")


def test_a_busy_machine_gets_advice(around: Surroundings) -> None:
    assert machine(examine(around), "load").advice == ""
    assert "alternately" in machine(examine(replace(around, load_1min=lambda: 99.0)), "load").advice
    assert machine(examine(replace(around, load_1min=lambda: None)), "load").state == "absent"


def test_a_cache_that_is_not_made_yet_is_fine_and_one_under_a_file_is_not(
    around: Surroundings, tmp_path: Path
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")

    assert machine(examine(around), "cache").state == "ok"
    assert not (tmp_path / "cache").exists()
    assert machine(examine(replace(around, cache=lambda: blocker / "magneton")), "cache").state == "unusable"


def test_the_cpu_clock_is_fine_enough_here(around: Surroundings) -> None:
    clock = sensor(examine(around), "cpu clock")

    assert clock.update_period_s is not None
    assert clock.resolution_j == pytest.approx(5.0 * clock.update_period_s)


def test_packages_are_named_without_importing_them(around: Surroundings) -> None:
    assert [package.name for package in examine(around).packages] == ["torch", "transformers", "zeus"]
