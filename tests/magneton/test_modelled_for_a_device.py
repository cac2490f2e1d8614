"""A run on a processor tells of another device: recorded, packed, shown and compared."""

from pathlib import Path

import pytest

from magneton.compare.model import Criteria
from magneton.compare.profiles import compare_profiles
from magneton.configs import config_path
from magneton.errors import Incomparable
from magneton.meters.devices import read_model
from magneton.profile.store import load
from magneton.record.progress import NoProgress
from magneton.report.summary import summarise_profile
from magneton.settings import Settings
from magneton.sides import obtain_pair, record_system

MINE = """
import torch

def network(x, copies):
    for _ in range(copies):
        x = x.clone()
    return torch.relu(x @ x)

def lean():
    return network, (torch.ones(256, 256), 0)

def wasteful():
    return network, (torch.ones(256, 256), 3)
"""

pytestmark = pytest.mark.systems


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def modelled_for(device: str) -> Settings:
    return Settings(meter=f"modelled:{device}", device="cpu", timeout_s=120.0)


def test_a_run_here_finds_waste_on_a_board_that_is_not_here(mine: Path) -> None:
    settings = modelled_for("h200")
    pair = obtain_pair(f"{mine}:wasteful", f"{mine}:lean", settings, NoProgress())

    comparison = compare_profiles(*pair, Criteria())

    assert comparison.verdict == "findings"
    assert comparison.findings[0].costly == "baseline"
    assert {profile.blocks for profile in pair} == {()}


def test_the_file_holds_all_that_its_joules_need(mine: Path, tmp_path: Path) -> None:
    text = config_path("devices", "a100").read_text()
    (tmp_path / "own.toml").write_text(text)
    settings = modelled_for(str(tmp_path / "own.toml"))

    record_system(f"{mine}:lean", settings, NoProgress(), output=tmp_path / "lean.mgn")
    (tmp_path / "own.toml").unlink()
    profile = load(tmp_path / "lean.mgn")
    (phase,) = summarise_profile(profile).phases

    assert profile.origin.meter.name == "modelled:own"
    assert profile.origin.meter.device == read_model("a100")
    assert phase.cost is not None
    assert 0 < phase.cost.low < phase.cost.value < phase.cost.high
    assert (phase.unread, phase.unattributed) == (0, 0.0)


def test_two_devices_are_not_compared(mine: Path, tmp_path: Path) -> None:
    for device in ("a100", "h200"):
        settings = modelled_for(device)
        record_system(f"{mine}:lean", settings, NoProgress(), output=tmp_path / f"{device}.mgn")

    with pytest.raises(Incomparable, match="meter is 'modelled:a100'"):
        compare_profiles(load(tmp_path / "a100.mgn"), load(tmp_path / "h200.mgn"), Criteria())
