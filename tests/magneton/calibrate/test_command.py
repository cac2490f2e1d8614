"""From a workbench and a meter to a file that the modelled meter reads."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_device import ENERGIES, FACTS, PlantedDevice, PlantedMeter

from magneton.calibrate.calibration import Calibration
from magneton.calibrate.command import calibrate_into, file_named
from magneton.calibrate.fit import NotIdentifiable
from magneton.calibrate.workbench import CACHE, CONSTANT, LAUNCH, MEMORY, energy_term
from magneton.calibrate.write import READINGS_SCHEMA, device_file, readings_path
from magneton.errors import Interrupted, MagnetonError
from magneton.meters.devices import read_model
from magneton.meters.registry import open_meter
from magneton.meters.sensors import SensorUnusable
from magneton.quantity import Provenance
from magneton.record.progress import NoProgress

BUDGET_S = 400.0
FITTED = [term for term in ENERGIES if " on zeros" not in term and term != LAUNCH]


def calibrated(
    output: Path | None, meter: PlantedMeter, *, budget_s: float = BUDGET_S, seed: int = 0
) -> tuple[Path, Calibration]:
    return calibrate_into(
        output,
        meter.device,
        meter,
        meter.device.clock,
        budget_s=budget_s,
        seed=seed,
        progress=NoProgress(),
    )


def planted(**changes: Any) -> PlantedMeter:
    return PlantedMeter(device=PlantedDevice(**changes), noise=0.003)


def test_what_was_planted_stands_in_the_file(tmp_path: Path) -> None:
    path, calibration = calibrated(tmp_path / "here.toml", planted())

    read = dict(read_model(str(path)).coefficients())
    for term in FITTED:
        assert read[term].value == pytest.approx(ENERGIES[term], rel=0.05), term
        assert read[term].source.startswith("fitted on Planted H100, driver 1.2.3, 20"), term
        assert ", meter planted" in read[term].source
    assert re.search(r"; operands that are all zero cost 6[0-5]% of it$", read[MEMORY].source)
    assert read["memory_bytes_per_s"].value == pytest.approx(3.0e12, rel=0.01)
    assert read["shortest_kernel_s"].value == pytest.approx(4e-6, rel=0.01)
    assert read["matrix float16 flop_per_s"].value == pytest.approx(650e12, rel=0.01)
    assert read["cache_bytes"].value == pytest.approx(50e6)
    assert calibration.warnings == () and calibration.left_out == ()
    assert abs(calibration.worst_error) < 0.02


def test_the_file_is_read_as_the_model_that_was_fitted(tmp_path: Path) -> None:
    path, calibration = calibrated(tmp_path / "here.toml", planted())

    read, written = dict(read_model(str(path)).coefficients()), dict(calibration.device.coefficients())

    assert read.keys() == written.keys()
    for name, coefficient in written.items():
        ours = (coefficient.low, coefficient.value, coefficient.high)
        assert (read[name].low, read[name].value, read[name].high) == pytest.approx(ours, rel=2e-5), name


def test_the_modelled_meter_takes_the_file(tmp_path: Path) -> None:
    path, _ = calibrated(tmp_path / "here.toml", planted())

    meter = open_meter(f"modelled:{path}", "cpu")

    info = meter.info()
    assert (info.name, info.provenance) == ("modelled:here", Provenance.MODELLED)
    assert info.device is not None and info.device.name == "Planted H100, calibrated"


def test_what_cannot_be_fitted_is_that_of_the_nearest_device_with_its_range(tmp_path: Path) -> None:
    path, calibration = calibrated(tmp_path / "here.toml", planted())

    read, shipped = read_model(str(path)), read_model("h100")

    assert calibration.nearest == "h100"
    name = energy_term("matrix", "float8")
    ours, theirs = dict(read.coefficients())[name], dict(shipped.coefficients())[name]
    assert (ours.low, ours.value, ours.high) == pytest.approx((theirs.low, theirs.value, theirs.high))
    assert ours.source.startswith("not fitted (nothing was run for it): that of h100; ")
    assert ours.source.endswith(theirs.source)


def test_a_term_lost_in_the_noise_is_taken_from_the_nearest_device(tmp_path: Path) -> None:
    """Bytes from the cache that cost nothing, under a meter that is off by five per cent a window."""
    meter = PlantedMeter(device=PlantedDevice(energies=dict(ENERGIES) | {CACHE: 0.0}), noise=0.05)

    path, calibration = calibrated(tmp_path / "here.toml", meter)

    (row,) = [row for row in calibration.rows if row.name == CACHE]
    assert row.origin == "shipped" and row.doubt
    read = dict(read_model(str(path)).coefficients())[CACHE]
    assert read.value == pytest.approx(dict(read_model("h100").coefficients())[CACHE].value)
    assert row.doubt in read.source


@given(
    energies=st.fixed_dictionaries(
        {
            CONSTANT: st.floats(20.0, 150.0),
            MEMORY: st.floats(80e-12, 250e-12),
            CACHE: st.floats(20e-12, 200e-12),
            energy_term("vector", "float32"): st.floats(2e-12, 40e-12),
            energy_term("matrix", "float16"): st.floats(0.2e-12, 2e-12),
        }
    ),
    name=st.text(max_size=30),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=15)
def test_whatever_was_measured_the_file_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, energies: Mapping[str, float], name: str, seed: int
) -> None:
    """A cache dearer than memory and a power beyond the data sheet included, and any name of a device."""
    device = PlantedDevice(energies={**ENERGIES, **energies}, known=replace(FACTS, name=name))
    meter = PlantedMeter(device=device, noise=0.02, seed=seed)

    path, calibration = calibrated(tmp_path_factory.mktemp("any") / "here.toml", meter, budget_s=260)

    read = read_model(str(path))
    assert read.constant_power_w.value == pytest.approx(calibration.device.constant_power_w.value, rel=1e-5)
    assert read.cache_j_per_byte.value <= read.memory_j_per_byte.value


def test_a_device_that_draws_more_than_its_data_sheet_is_allowed_to(tmp_path: Path) -> None:
    meter = planted(energies=dict(ENERGIES) | {MEMORY: 400e-12})

    path, _ = calibrated(tmp_path / "here.toml", meter)

    tdp = read_model(str(path)).tdp_w
    assert tdp.value > 1200 and tdp.high >= tdp.value
    assert "was seen" in tdp.source


def test_a_model_that_does_not_explain_the_readings_is_doubted(tmp_path: Path) -> None:
    """One of the benchmarks draws 150 W that no coefficient accounts for."""
    _, calibration = calibrated(
        tmp_path / "here.toml", planted(besides_w={"sum in cache, 11 MiB": 250.0, "rest": 60.0})
    )

    assert abs(calibration.worst_error) > 0.2
    assert any("the model misses" in warning for warning in calibration.warnings)


def test_throttling_and_other_users_are_doubts(tmp_path: Path) -> None:
    meter = PlantedMeter(device=PlantedDevice(), throttle=("sw-power-cap",), foreign=1)

    _, calibration = calibrated(tmp_path / "here.toml", meter)

    assert any("sw-power-cap" in warning for warning in calibration.warnings)
    assert any("others used the device" in warning for warning in calibration.warnings)


def test_windows_that_were_not_read_are_named_and_the_rest_is_fitted(tmp_path: Path) -> None:
    meter = PlantedMeter(
        device=PlantedDevice(), noise=0.003, gap=lambda window: "stale" if window < 4 else ""
    )

    path, calibration = calibrated(tmp_path / "here.toml", meter)

    (left,) = calibration.left_out
    assert (left.windows, left.gap) == (1, "stale")
    assert dict(read_model(str(path)).coefficients())[MEMORY].value == pytest.approx(144e-12, rel=0.05)


def test_the_same_seed_and_readings_give_the_same_figures(tmp_path: Path) -> None:
    _, once = calibrated(tmp_path / "here.toml", planted(), seed=3)
    _, again = calibrated(tmp_path / "here.toml", planted(), seed=3)

    assert once.device.digest() == again.device.digest()


def test_a_meter_that_never_reads_gives_no_file(tmp_path: Path) -> None:
    output = tmp_path / "here.toml"
    meter = PlantedMeter(device=PlantedDevice(), gap=lambda window: "the counter stands still")

    with pytest.raises(MagnetonError, match="4 benchmarks one after the other") as raised:
        calibrated(output, meter)

    assert not output.exists()
    kept = json.loads(readings_path(output).read_text())
    assert kept["trials"][0]["gap"] == "the counter stands still"
    assert str(readings_path(output)) in raised.value.hint


@pytest.mark.parametrize("end", [KeyboardInterrupt(), SensorUnusable("the board is lost", hint="reboot")])
def test_what_ends_early_leaves_its_readings_and_the_old_file(tmp_path: Path, end: BaseException) -> None:
    output = tmp_path / "here.toml"
    output.write_text("old")
    meter = PlantedMeter(device=PlantedDevice(), breaks={8: end})

    with pytest.raises(MagnetonError) as raised:
        calibrated(output, meter)

    assert output.read_text() == "old"
    kept = json.loads(readings_path(output).read_text())
    assert kept["schema"] == READINGS_SCHEMA
    assert len(kept["trials"]) == 7 and kept["trials"][0]["energy_j"] > 0
    assert kept["benchmarks"][0]["name"] == "rest"
    assert "the 7 windows" in raised.value.hint and str(readings_path(output)) in raised.value.hint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.readings.json", "here.toml"]
    assert isinstance(raised.value, Interrupted) == isinstance(end, KeyboardInterrupt)


def test_an_interruption_before_the_first_window_leaves_nothing(tmp_path: Path) -> None:
    meter = PlantedMeter(device=PlantedDevice(), breaks={1: KeyboardInterrupt()})

    with pytest.raises(Interrupted) as raised:
        calibrated(tmp_path / "here.toml", meter)

    assert raised.value.hint == "nothing had been measured"
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    meter = planted()

    with pytest.raises(MagnetonError, match="cannot write"):
        calibrated(tmp_path / "no" / "here.toml", meter)

    assert meter.windows == 0


def test_an_output_that_is_no_device_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MagnetonError, match=r"ends in \.toml") as raised:
        calibrated(tmp_path / "here.mgn", planted())
    assert raised.value.hint == "--output here.toml"


def test_a_board_that_never_leaves_its_constant_power_is_refused(tmp_path: Path) -> None:
    """As a meter of another board would show it."""
    meter = PlantedMeter(
        device=PlantedDevice(energies=dict.fromkeys(ENERGIES, 0.0) | {CONSTANT: 800.0}), noise=0.0
    )

    with pytest.raises(NotIdentifiable, match=r"constant power") as raised:
        calibrated(tmp_path / "here.toml", meter)
    assert "meter" in raised.value.hint


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("NVIDIA H200", "nvidia-h200.toml"),
        ("Intel(R) Xeon(R) Platinum 8480+", "intel-r-xeon-r-platinum-8480.toml"),
        ("../../etc", "etc.toml"),
        ("\u202e", "device.toml"),
    ],
)
def test_without_an_output_the_file_is_named_after_the_device(name: str, file: str) -> None:
    assert file_named(name) == Path(file)


def test_the_file_is_toml_whatever_the_device_is_called(tmp_path: Path) -> None:
    name = 'a "board"\\ \x1b[31m\x7f\n[tdp_w]'

    _, calibration = calibrated(tmp_path / "here.toml", planted(known=replace(FACTS, name=name)))

    table = tomllib.loads(device_file(calibration).decode())
    assert table["name"].startswith('a "board"\\ \\x1b[31m')
    assert table["units"][0]["energy_pj_per_flop"]["low"] > 0
