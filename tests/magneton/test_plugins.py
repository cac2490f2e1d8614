import tomllib
from pathlib import Path

import pytest

from magneton.configs import config_names
from magneton.errors import MagnetonError
from magneton.plugins import BUILT_IN, METERS, SYSTEMS, load_plugin, plugin_names

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize("group", [SYSTEMS, METERS])
def test_the_table_and_the_entry_points_are_the_same(group: str):
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]
    assert BUILT_IN[group] == declared[group]


def test_every_built_in_system_is_described():
    assert set(config_names("systems")) == set(BUILT_IN[SYSTEMS])


@pytest.mark.parametrize("name", sorted(BUILT_IN[SYSTEMS]))
def test_built_in_systems_load(name: str):
    assert load_plugin(SYSTEMS, name).__name__ == BUILT_IN[SYSTEMS][name].partition(":")[2]


def test_an_unknown_plugin_offers_the_nearest():
    with pytest.raises(MagnetonError) as caught:
        load_plugin(SYSTEMS, "tranformers")
    assert "unknown system 'tranformers'" in str(caught.value)
    assert "'transformers'" in caught.value.hint


def install(folder: Path, distribution: str, group: str, name: str, value: str) -> None:
    """What an installer leaves behind: metadata that declares one entry point."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")


def test_somebody_elses_plugin_comes_through_the_same_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    install(tmp_path, "toy", METERS, "toy", "somebodys_meter:Toy")
    (tmp_path / "somebodys_meter.py").write_text("class Toy:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "toy" in plugin_names(METERS)
    assert load_plugin(METERS, "toy").__name__ == "Toy"


def test_two_owners_of_one_name_are_both_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    install(tmp_path, "rival", SYSTEMS, "torch", "rival:TorchSystem")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MagnetonError) as caught:
        load_plugin(SYSTEMS, "torch")
    assert "rival:TorchSystem" in str(caught.value)
    assert BUILT_IN[SYSTEMS]["torch"] in str(caught.value)


def test_a_plugin_whose_package_is_missing_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    install(tmp_path, "needy", METERS, "needy", "needy_meter:Needy")
    (tmp_path / "needy_meter.py").write_text("import a_package_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MagnetonError, match="needs the package a_package_nobody_has"):
        load_plugin(METERS, "needy")
