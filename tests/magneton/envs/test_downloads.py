from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import parse_wheel_filename
from wheels import write_wheel

from magneton.envs.downloads import discard_broken, is_whole, keep, preferred, use_leftovers

names = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)
builds = st.sampled_from(["", "-1", "-20240101abc"])
versions = st.sampled_from(["1.0", "2.13.0+cpu", "0.1.15.post2", "1!3.0rc1"])
tags = st.sampled_from(["py3-none-any", "cp311-cp311-manylinux_2_28_x86_64.manylinux2014_x86_64"])


@given(names, versions, builds, tags)
def test_a_preferred_wheel_is_the_same_with_a_higher_build_number(
    name: str, version: str, build: str, tag: str
) -> None:
    original = f"{name}-{version}{build}-{tag}.whl"
    found, found_version, found_build, found_tags = parse_wheel_filename(preferred(original))
    before, version_before, build_before, tags_before = parse_wheel_filename(original)

    assert (found, found_version, found_tags) == (before, version_before, tags_before)
    assert found_build > build_before


def test_what_is_no_wheel_keeps_its_name() -> None:
    assert preferred("toy.whl") == "toy.whl"


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    temporary, downloads = tmp_path / "t", tmp_path / "d"
    (temporary / "pip-unpack-1").mkdir(parents=True)
    return temporary, downloads


def test_downloads_are_kept_while_they_grow_and_used_when_they_are_whole(places: tuple[Path, Path]) -> None:
    temporary, downloads = places
    assert not use_leftovers(temporary, downloads)
    (temporary / "pip-unpack-1").mkdir()
    whole = write_wheel(temporary / "pip-unpack-1", "whole", "1.0")
    content = write_wheel(temporary / "pip-unpack-1", "growing", "1.0").read_bytes()
    growing = temporary / "pip-unpack-1" / "growing-1.0-py3-none-any.whl"
    growing.write_bytes(content[:-1])

    keep(temporary, downloads)
    with growing.open("ab") as file:
        file.write(content[-1:])
    whole.unlink()  # as pip does when it fails

    assert use_leftovers(temporary, downloads)
    assert {wheel.name for wheel in downloads.iterdir()} == {
        preferred("whole-1.0-py3-none-any.whl"),
        preferred("growing-1.0-py3-none-any.whl"),
    }
    assert list(temporary.iterdir()) == []


@given(st.data())
def test_a_wheel_that_was_cut_off_anywhere_is_not_used(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "cut"
    folder.mkdir(exist_ok=True)
    wheel = write_wheel(folder, "toy", "1.0")
    content = wheel.read_bytes()
    assert is_whole(wheel, thorough=True)

    wheel.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    discard_broken(folder, thorough=False)

    assert not wheel.exists()


def test_a_damaged_wheel_is_found_by_reading_it(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, "toy", "1.0")
    content = bytearray(wheel.read_bytes())
    content[len(content) // 2] ^= 1
    wheel.write_bytes(content)

    assert is_whole(wheel, thorough=False)
    assert not is_whole(wheel, thorough=True)
