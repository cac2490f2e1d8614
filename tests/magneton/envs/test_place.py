from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_environment import toy_description, toy_place, toy_variant

from magneton.envs.place import digest, folders_of, is_ready, states
from magneton.envs.remove import remove
from magneton.system import Step

packages = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4).map(tuple)
installs = st.builds(Step, install=packages, with_dependencies=st.booleans())
steps = st.lists(installs | st.builds(Step, remove=packages), min_size=1, max_size=4).map(tuple)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAGNETON_CACHE", str(tmp_path))
    (tmp_path / "environments").mkdir()
    return tmp_path / "environments"


@given(steps, steps)
def test_environments_are_the_same_exactly_if_their_steps_are(
    one: tuple[Step, ...], other: tuple[Step, ...]
) -> None:
    assert (digest(one) == digest(other)) == (one == other)


def test_size_and_note_are_no_part_of_what_is_installed(root: Path) -> None:
    variant = toy_variant()
    assert toy_place(variant) == replace(
        toy_place(replace(variant, size_bytes=5, note="larger")), variant=variant
    )
    assert toy_place().folder.parent == root


def test_leftovers_of_a_system_are_found_by_name_alone(root: Path) -> None:
    for name in (
        "toy-cpu-0123456789ab.log",
        "toy-cuda-0123456789ab.lock",
        "toy-cuda-0123456789ab",
        "toy-two-cpu-0123456789ab",
        "toy-cpu-0123456789ab.txt",
        "toy-cpu-short",
        "other",
    ):
        (root / name).touch() if name.endswith(".lock") else (root / name).mkdir()

    assert [folder.name for folder in folders_of("toy")] == [
        "toy-cpu-0123456789ab",
        "toy-cuda-0123456789ab",
    ]
    assert [folder.name for folder in folders_of("toy-two")] == ["toy-two-cpu-0123456789ab"]
    assert len(folders_of(None)) == 3

    remove(folders_of(None))
    assert sorted(place.name for place in root.iterdir()) == [
        "other",
        "toy-cpu-0123456789ab.txt",
        "toy-cpu-short",
    ]


WHOLE = '{"schema": "magneton-environment", "size_bytes": 5, "versions": {}}'


@pytest.mark.parametrize(
    ("marker", "python", "state"),
    [
        (WHOLE, True, "ready"),
        (WHOLE, False, "outdated"),
        (None, True, "unfinished"),
        (WHOLE[:-3], True, "unfinished"),
        ("[]", True, "unfinished"),
        ("\x00", True, "unfinished"),
        (WHOLE.replace("environment", "comparison"), True, "unfinished"),
        (WHOLE.replace("5", '"5"'), True, "unfinished"),
    ],
)
def test_only_a_whole_marker_and_an_interpreter_make_an_environment(
    root: Path, marker: str | None, python: bool, state: str
) -> None:
    del root
    environment = toy_place()
    environment.python.parent.mkdir(parents=True)
    if python:
        environment.python.touch()
    if marker is not None:
        (environment.folder / "magneton-ready.json").write_text(marker)

    cpu, cuda = states("toy", toy_description())

    assert is_ready(environment) == (state == "ready")
    assert (cpu.state, cuda.state) == (state, "not made")


@pytest.mark.parametrize("begun", [Path.mkdir, Path.touch])
def test_downloads_alone_are_a_beginning(root: Path, begun: Callable[[Path], None]) -> None:
    del root
    begun(toy_place().downloads)
    assert states("toy", toy_description())[0].state == "unfinished"
