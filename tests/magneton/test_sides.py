"""Sides that have to be run: the whole road from a user's file to a verdict, counted, so no clock matters."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from magneton.compare.model import Criteria
from magneton.compare.profiles import compare_profiles
from magneton.configs import config_path
from magneton.errors import Incomparable, MagnetonError
from magneton.profile.store import load, save
from magneton.record.progress import NoProgress
from magneton.settings import Settings
from magneton.sides import obtain_pair, record_system

MINE = """
import torch

def network(x, copies):
    for _ in range(copies):
        x = x.clone()
    return torch.relu(x @ x)

def built(copies):
    generator = torch.Generator().manual_seed(0)
    return network, (torch.randn(32, 32, generator=generator), copies)

def lean():
    return built(0)

def wasteful():
    return built(3)

def never():
    raise RuntimeError("this was not to be run")
"""
COUNTED = Settings(meter="counted:bytes", device="cpu", timeout_s=120.0)

pytestmark = pytest.mark.systems


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_two_callables_are_run_and_the_copies_are_found(mine: Path, tmp_path: Path) -> None:
    pair = obtain_pair(f"{mine}:wasteful", f"{mine}:lean", COUNTED, NoProgress(), save=tmp_path / "kept")
    comparison = compare_profiles(*pair, Criteria())

    assert comparison.verdict == "findings"
    assert comparison.findings[0].costly == "baseline"
    assert comparison.same_work.status == "same"
    assert load(tmp_path / "kept" / "baseline.mgn").origin == pair[0].origin


def test_a_file_and_a_callable_make_a_pair_recorded_apart(mine: Path, tmp_path: Path) -> None:
    record_system(f"{mine}:lean", COUNTED, NoProgress(), output=tmp_path / "lean.mgn")

    pair = obtain_pair(str(tmp_path / "lean.mgn"), f"{mine}:lean", Settings(timeout_s=120.0), NoProgress())
    comparison = compare_profiles(*pair, Criteria())

    assert pair[1].origin.meter.name == "counted:bytes"
    assert not comparison.paired
    assert comparison.verdict == "no difference"


@pytest.mark.parametrize(
    ("other", "field"),
    [
        (Settings(seed=5), "seed is 0 in the baseline and 5 in the candidate"),
        (Settings(meter="counted:flops"), "meter is 'counted:bytes' in the baseline"),
        (Settings(device="cuda:0"), "device kind is 'cpu' in the baseline and 'cuda' in the candidate"),
        (Settings(threads=2), "number of threads is 1 in the baseline and 2 in the candidate"),
    ],
)
def test_what_cannot_be_compared_with_a_file_is_refused_before_it_is_run(
    mine: Path, tmp_path: Path, other: Settings, field: str
) -> None:
    record_system(f"{mine}:lean", COUNTED, NoProgress(), output=tmp_path / "lean.mgn")

    with pytest.raises(Incomparable, match=field):
        obtain_pair(str(tmp_path / "lean.mgn"), f"{mine}:never", other, NoProgress())


def test_a_device_file_is_named_again_for_the_other_side(mine: Path, tmp_path: Path) -> None:
    own, spoilt = tmp_path / "own.toml", tmp_path / "other" / "own.toml"
    own.write_text(config_path("devices", "h200").read_text())
    spoilt.parent.mkdir()
    spoilt.write_text(own.read_text().replace("700.0", "650.0"))
    settings = Settings(timeout_s=120.0, meter=f"modelled:{own}")
    record_system(f"{mine}:lean", settings, NoProgress(), output=tmp_path / "lean.mgn")

    with pytest.raises(MagnetonError, match="a device file of its own"):
        obtain_pair(str(tmp_path / "lean.mgn"), f"{mine}:never", Settings(), NoProgress())
    with pytest.raises(Incomparable, match="coefficients"):
        other = Settings(meter=f"modelled:{spoilt}")
        obtain_pair(str(tmp_path / "lean.mgn"), f"{mine}:never", other, NoProgress())
    pair = obtain_pair(str(tmp_path / "lean.mgn"), f"{mine}:lean", settings, NoProgress())
    assert compare_profiles(*pair, Criteria()).verdict == "no difference"


def test_a_system_against_a_file_decodes_the_tokens_of_the_file(tmp_path: Path) -> None:
    """Under the file's grad mode, too."""
    settings = Settings(scale="tiny", prompt_tokens=4, decode_steps=2, meter="counted:flops")
    recorded = record_system("torch", settings, NoProgress(), output=tmp_path / "first.mgn")
    given = np.array([[7], [8]])
    other = replace(
        recorded,
        outputs={**recorded.outputs, "decode.fed": given},
        origin=replace(recorded.origin, grad_mode="inference"),
    )
    save(other, tmp_path / "other.mgn")

    _, candidate = obtain_pair(str(tmp_path / "other.mgn"), "torch", Settings(), NoProgress())

    np.testing.assert_array_equal(candidate.outputs["decode.fed"], given)
    assert candidate.origin.grad_mode == "inference"
    assert not np.array_equal(recorded.outputs["decode.fed"], given)
