"""The doctor's report, at 80 and at 160 columns, and as JSON."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from looked_at import bare_machine

from magneton.doctor import Check, Conditions, Diagnosis, examine
from magneton.meters.probe import BoardProbe
from magneton.report.console import console_for
from magneton.report.doctor import doctor_json, print_doctor

PROBE = BoardProbe(
    period_s=0.1,
    step_j=8.5,
    poll_s=1e-3,
    fields=(186, 185, 83),
    agreement=0.57,
    noise=0.01,
    stale=False,
    source="counter",
    probed_at="2026-11-30T12:00:00+00:00",
)
BOARD = Check(
    name="nvml, board 0",
    state="ok",
    detail="NVIDIA [bold]H200[/bold] (GPU-1)",
    reads="the energy counter, between its changes",
    update_period_s=0.1,
    resolution_j=8.5,
    shortest_window_s=2.0,
    gain=0.05,
    probe=PROBE,
    now=Conditions(power_w=85.0, temperature_c=34.4, clock_hz=1.98e9, throttle=("hw-thermal",), processes=2),
)


def with_board(folder: Path) -> Diagnosis:
    found = examine(bare_machine(folder))
    return replace(found, sensors=(BOARD, *found.sensors), meters={"cpu": "rapl", "cuda": "nvml"})


def printed(diagnosis: Diagnosis, width: int) -> str:
    stream = io.StringIO()
    print_doctor(diagnosis, console_for(stream, width))
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 160])
def test_it_fits_and_loses_nothing(tmp_path: Path, width: int) -> None:
    text = printed(with_board(tmp_path), width)
    words = " ".join(text.split())

    assert max(map(len, text.splitlines())) <= width
    for expected in (
        "ok: NVIDIA [bold]H200[/bold] (GPU-1)",
        "new figures every 100 ms, in steps of 8.50 J; windows of 2.00 s or more; scale within 5 %",
        "instantaneous power is 0.57 of the counter's",
        "now: 85 W, 34 C, 1980 MHz, held down: hw-thermal, processes of others: 2",
        "--meter auto takes rapl for work on cpu, nvml for work on cuda",
    ):
        assert expected in words


def test_json_holds_all_of_it_under_its_schema(tmp_path: Path) -> None:
    found = json.loads(doctor_json(with_board(tmp_path)))

    assert (found["schema"], found["version"]) == ("magneton-doctor", 1)
    assert found["sensors"][0]["probe"]["agreement"] == 0.57
    assert found["sensors"][0]["now"]["processes"] == 2
    assert found["meters"] == {"cpu": "rapl", "cuda": "nvml"}
    assert {model["name"] for model in found["models"]} >= {"modelled:h200", "modelled:a100"}
