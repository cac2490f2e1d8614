"""Saving and loading whole profiles: the identity, the same bytes, the schema versions ever released."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from profiles import NASTY_TEXTS, a_value, an_operator, an_origin, profiles, same_profile, small_profile

from magneton.errors import InvalidProfile, MagnetonError
from magneton.profile.checks import check
from magneton.profile.model import Doubt, Frame, Profile, ScopeTime, Stack
from magneton.profile.store import load, save
from magneton.workload import PREFILL, Workload

DATA = Path(__file__).parents[1] / "data"

ONE_FOLDER = [HealthCheck.function_scoped_fixture]  # examples overwrite each other's file, as users do


@settings(max_examples=60, deadline=None, suppress_health_check=ONE_FOLDER)
@given(profile=profiles())
def test_loading_what_was_saved_gives_the_same_profile(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "some.mgn"
    save(profile, path)
    assert same_profile(load(path), profile)


@settings(max_examples=15, deadline=None, suppress_health_check=ONE_FOLDER)
@given(profile=profiles())
def test_the_same_profile_gives_the_same_bytes(profile: Profile, tmp_path: Path) -> None:
    save(profile, tmp_path / "first.mgn")
    save(load(tmp_path / "first.mgn"), tmp_path / "second.mgn")
    assert (tmp_path / "first.mgn").read_bytes() == (tmp_path / "second.mgn").read_bytes()


def test_an_empty_profile_survives(tmp_path: Path) -> None:
    profile = replace(small_profile(operators=0), stacks=(), blocks=(), outputs={})
    save(profile, tmp_path / "empty.mgn")
    assert same_profile(load(tmp_path / "empty.mgn"), profile)


@pytest.mark.parametrize("text", NASTY_TEXTS)
def test_strings_come_back_as_they_are_wherever_they_stand(text: str, tmp_path: Path) -> None:
    phase = text or PREFILL
    origin = an_origin(
        system=text, options={text: text}, flags={text: text}, workload=Workload(phases=(phase,))
    )
    profile = replace(
        small_profile(operators=0),
        origin=origin,
        operators=(an_operator(0, phase=phase, name=text, attributes=text, module_path=text),),
        values=(a_value(0, name=text, dtype=text),),
        stacks=(Stack(frames=(Frame(file=text, line=0, function=text, code=text),)),),
        keys=(replace(small_profile(operators=1).keys[0], skipped=text),),
        blocks=(),
        scopes=(ScopeTime(phase=phase, scope=text, duration_s=1.0, samples=1),),
        outputs={text or "x": np.zeros(3)},
        doubts=(Doubt(kind=text, text=text),),
    )
    save(profile, tmp_path / "nasty.mgn")
    assert same_profile(load(tmp_path / "nasty.mgn"), profile)


def test_a_path_that_is_no_unicode_is_written_out(tmp_path: Path) -> None:
    stray = Stack(frames=(Frame(file="caf\udce9.py", line=1, function="f", code=""),))
    profile = replace(small_profile(), origin=an_origin(model="caf\udce9"), stacks=(stray,))
    save(profile, tmp_path / "stray.mgn")
    loaded = load(tmp_path / "stray.mgn")
    assert loaded.stacks[0].frames[0].file == r"caf\udce9.py"
    assert loaded.origin.model == r"caf\udce9"


def test_outputs_in_any_memory_layout_come_back_as_equal_arrays(tmp_path: Path) -> None:
    grid = np.arange(12, dtype=">f4").reshape(3, 4)
    outputs = {"transposed": grid.T, "every other": grid[:, ::2], "scalar": np.array(2.5)}
    save(small_profile(outputs=outputs), tmp_path / "layouts.mgn")
    for name, array in load(tmp_path / "layouts.mgn").outputs.items():
        np.testing.assert_array_equal(array, outputs[name])


def test_the_recorded_profile_of_version_1_still_loads() -> None:
    profile = load(DATA / "version-1.mgn")
    check(profile)
    assert profile.origin.model == "llama-tiny"
    assert [op.name for op in profile.operators] == [
        "aten.mm.default",
        "aten.add_.Tensor",
        "aten.relu.default",
    ]
    assert profile.operators[1].mutated == (3,)
    assert profile.values[1].name == "model.weight"
    assert profile.stacks[0].frames[0].code == "y = x @ self.weight"
    assert profile.keys[2].skipped == "draws random numbers"
    assert profile.blocks[1].energy_j is None
    assert profile.outputs["prefill.logits"].tolist() == [[0.0, 1.5], [2.5, 0.0]]
    assert profile.doubts == (Doubt(kind="short-blocks", text="blocks last less than 0.1 s"),)


def test_the_recorded_profile_of_version_2_still_loads() -> None:
    profile = load(DATA / "version-2.mgn")
    check(profile)
    assert [value.drift for value in profile.values][:3] == [None, 0.0, 0.125]
    assert all(value.drift is None for value in load(DATA / "version-1.mgn").values)


def test_the_recorded_profile_of_version_3_still_loads() -> None:
    profile = load(DATA / "version-3.mgn")
    check(profile)
    assert [operator.scope for operator in profile.operators] == ["input preparation", "", ""]
    assert [(s.scope, s.duration_s, s.samples) for s in profile.scopes] == [
        ("input preparation", 0.25, 3),
        ("", 0.125, 1),
    ]


def test_the_recorded_profile_of_version_4_still_loads() -> None:
    profile = load(DATA / "version-4.mgn")
    check(profile)
    assert profile.origin.host_meter is not None
    assert (profile.origin.host_meter.name, profile.origin.host_meter.scale_high) == ("modelled", 2.0)
    assert (profile.origin.meter.window_error, profile.origin.replay_cache) == (0.001, "cold")
    device = profile.origin.meter.device
    assert device is not None
    assert (device.name, device.memory_bytes_per_s.value) == ("NVIDIA H200 SXM", 4.8e12)
    assert [unit.name() for unit in device.units][-1] == "matrix int8"
    assert [block.host_energy_j for block in profile.blocks][:2] == [0.5, None]
    assert profile.blocks[1].gap == "the energy counter was reset"
    assert profile.replays[0].busy_share == 0.25
    assert (profile.conditions[0].temperature_c, profile.conditions[0].throttle) == (41.0, "sw-power-cap")
    assert (profile.idle[0].power_w, profile.idle[0].host_power_w) == (61.5, None)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_profiles_made_before_conditions_were_kept_have_none(version: int) -> None:
    profile = load(DATA / f"version-{version}.mgn")
    assert (profile.conditions, profile.idle, profile.origin.host_meter) == ((), (), None)
    assert profile.origin.meter.device is None
    assert {block.gap for block in profile.blocks} == {""}


@pytest.mark.parametrize("version", [1, 2])
def test_profiles_made_before_there_were_scopes_have_none(version: int) -> None:
    profile = load(DATA / f"version-{version}.mgn")
    assert profile.scopes == ()
    assert {operator.scope for operator in profile.operators} == {""}


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "kept.mgn"
    save(small_profile(), path)
    before = path.read_bytes()
    with pytest.raises(InvalidProfile, match="operator 0 refers to stack 0 of 0"):
        save(small_profile(stacks=()), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["kept.mgn"]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"x": np.array(["text"])}, "dtype <U4"),
        ({"x": np.array([object()])}, "dtype object"),
        ({"x": np.zeros(9_000_000)}, "72000000 bytes"),
    ],
)
def test_outputs_that_a_file_cannot_hold_are_named(
    outputs: dict[str, np.ndarray], message: str, tmp_path: Path
) -> None:
    with pytest.raises(MagnetonError, match=message):
        save(small_profile(outputs=outputs), tmp_path / "x.mgn")
