"""A whole calibration of a simulated H100 through the real NVML meter, in virtual time."""

import json
from pathlib import Path

import pytest
from planted_device import ENERGIES
from simulated_board import H100, compiler, in_simulation
from simulated_calibration import calibrate_simulated

from magneton.calibrate.workbench import CACHE, CONSTANT, MEMORY, energy_term
from magneton.calibrate.write import readings_path
from magneton.meters.devices import read_model

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")

DYNAMIC = (
    MEMORY,
    CACHE,
    energy_term("vector", "float32"),
    energy_term("matrix", "tf32"),
    energy_term("matrix", "bfloat16"),
    energy_term("matrix", "float16"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("gain", "counter"), [(1.0, "integral"), (0.97, "sampled")])
def test_what_was_planted_on_the_board_lies_within_the_ranges(
    tmp_path: Path, gain: float, counter: str
) -> None:
    found = in_simulation(calibrate_simulated, output=str(tmp_path / "h100.toml"), gain=gain, counter=counter)

    assert found["meter"] == "nvml" and found["left out"] == []
    for term in DYNAMIC:
        low, value, high, origin = found["figures"][term]
        assert origin == "fitted"
        assert low <= ENERGIES[term] <= high, term
        assert value == pytest.approx(gain * ENERGIES[term], rel=0.04), term
    # A warm board leaks: what is constant at work lies above what was programmed for a cold one at rest.
    assert found["figures"][CONSTANT][1] == pytest.approx(gain * (H100.idle_w + 5.0), rel=0.05)
    assert abs(found["worst error"]) < 0.03
    assert read_model(found["path"]).memory_j_per_byte.value == pytest.approx(
        found["figures"][MEMORY][1], rel=1e-5
    )


def test_a_board_that_is_lost_on_the_way_leaves_what_was_read(tmp_path: Path) -> None:
    output = tmp_path / "h100.toml"

    found = in_simulation(calibrate_simulated, output=str(output), lost_at_s=40.0)

    assert "lost" in found["error"].lower()
    assert str(readings_path(output)) in found["hint"]
    assert not output.exists()
    trials = json.loads(readings_path(output).read_text())["trials"]
    read = [trial for trial in trials if trial["energy_j"] is not None]
    assert len(read) >= 5 and all(trial["energy_j"] > 0 for trial in read)
