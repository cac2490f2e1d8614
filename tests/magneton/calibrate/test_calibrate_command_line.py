"""``magneton calibrate`` from outside, and what it prints."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from commands import magneton, told
from planted_device import FACTS, PlantedDevice, PlantedMeter

from magneton.calibrate.calibration import Calibration
from magneton.calibrate.command import calibrate_into
from magneton.calibrate.text import calibration_json, print_calibration
from magneton.record.progress import NoProgress
from magneton.report.console import console_for


@pytest.mark.parametrize("meter", ["modelled", "counted:flops"])
def test_a_meter_that_does_not_measure_is_refused(tmp_path: Path, meter: str) -> None:
    output = tmp_path / "here.toml"

    left = magneton("calibrate", "--device", "cpu", "--meter", meter, "--output", output)

    told(left, "does not measure the energy of cpu", "magneton doctor", code=2)
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_is_none_is_refused() -> None:
    told(magneton("calibrate", "--device", "gpu"), "unknown device 'gpu'", code=2)


def test_a_meter_that_is_none_is_refused() -> None:
    told(magneton("calibrate", "--device", "cpu", "--meter", "rapll"), "did you mean 'rapl'?", code=2)


def test_help_fits_in_80_columns() -> None:
    left = magneton("calibrate", "--help")

    assert left.code == 0
    assert max(len(line) for line in left.stdout.splitlines()) <= 80
    assert "--meter modelled:./board.toml" in left.stdout


def calibration(tmp_path: Path, *, budget_s: float = 300.0, **changes: Any) -> Calibration:
    meter = PlantedMeter(device=PlantedDevice(), noise=0.003, **changes)
    _, found = calibrate_into(
        tmp_path / "here.toml",
        meter.device,
        meter,
        meter.device.clock,
        budget_s=budget_s,
        seed=0,
        progress=NoProgress(),
    )
    return found


NAMES = ("from memory, pJ/B", "shortest kernel, us", "matrix float8 arithmetic, pJ/FLOP")


def printed(found: Calibration) -> str:
    stream = io.StringIO()
    print_calibration(found, console_for(stream, width=80))
    return stream.getvalue()


def test_text_fits_in_80_columns_and_says_where_figures_come_from(tmp_path: Path) -> None:
    text = printed(calibration(tmp_path))

    assert max(len(line) for line in text.splitlines()) <= 80
    rows = {name: line.split() for line in text.splitlines() for name in NAMES if line.startswith(name)}
    assert rows["from memory, pJ/B"][-4::3] == ["144", "fitted"]
    assert rows["shortest kernel, us"][-4:] == ["4", "4", "4", "measured"]
    assert rows["matrix float8 arithmetic, pJ/FLOP"][-1] == "h100"
    assert "error: median 0." in text
    assert "Doubts" not in text


def stale_at_first(window: int) -> str:
    return "stale" if window < 4 else ""


def test_text_names_what_was_left_out_and_what_to_doubt(tmp_path: Path) -> None:
    text = printed(calibration(tmp_path, throttle=("hw-thermal",), gap=stale_at_first))

    told_of = " ".join(text.split())
    assert "Doubts" in told_of and "hw-thermal" in told_of
    assert "1 of 3 windows were not read: stale" in told_of


def test_json_holds_every_window_and_coefficient(tmp_path: Path) -> None:
    found = calibration(tmp_path)

    document = json.loads(calibration_json(found))

    assert (document["schema"], document["version"]) == ("magneton-calibration", 1)
    assert len(document["trials"]) == len(found.trials)
    assert document["device"]["memory_j_per_byte"]["value"] == pytest.approx(144e-12, rel=0.05)
    assert document["facts"]["name"] == FACTS.name
    assert {row["origin"] for row in document["rows"]} == {"fitted", "measured", "driver", "shipped"}
