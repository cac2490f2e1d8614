from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from magneton.configs import config_names, config_path, configs_folder, read_config
from magneton.errors import MagnetonError


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    size: int
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    name: str
    kind: Literal["cpu", "cuda"]
    parts: tuple[Part, ...] = ()
    by_name: Mapping[str, Part] = field(default_factory=dict[str, Part])
    note: str | None = None
    anything: Mapping[str, object] = field(default_factory=dict[str, object])
    on: bool = False

    def __post_init__(self) -> None:
        if self.name == "forbidden":
            raise ValueError("the name is forbidden")


def read(folder: Path, text: str) -> Whole:
    path = folder / "whole.toml"
    path.write_text(text)
    return read_config(path, Whole)


def test_nested_tables_become_dataclasses(tmp_path: Path):
    whole = read(
        tmp_path,
        """
        name = "w"
        kind = "cuda"
        on = true
        note = "n"
        anything = { a = [1, "x"], b = 2.5 }
        [[parts]]
        size = 1
        [[parts]]
        size = 2
        scale = 3
        [by_name.x]
        size = 4
        """,
    )
    assert whole == Whole(
        name="w",
        kind="cuda",
        on=True,
        note="n",
        anything={"a": [1, "x"], "b": 2.5},
        parts=(Part(size=1), Part(size=2, scale=3.0)),
        by_name={"x": Part(size=4)},
    )
    assert isinstance(whole.parts[1].scale, float)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('nam = "w"\nkind = "cpu"', "unknown key 'nam'", "did you mean 'name'?"),
        ('name = "w"', "key 'kind' is missing", "add kind = ..."),
        ('name = 1\nkind = "cpu"', "name must be text, not 1", "correct"),
        ('name = "w"\nkind = "cqu"', "unknown value 'cqu'", "did you mean 'cpu'?"),
        ('name = "w"\nkind = "cpu"\nparts = 3', "parts must be a list, not 3", "correct"),
        ('name = "w"\nkind = "cpu"\nparts = [3]', "parts[0] must be a table, not 3", "correct"),
        (
            'name = "w"\nkind = "cpu"\n[[parts]]\nsize = 1.5',
            "size must be a whole number, not 1.5",
            "correct",
        ),
        (
            'name = "w"\nkind = "cpu"\n[[parts]]\nsize = true',
            "size must be a whole number, not True",
            "correct",
        ),
        ('name = "w"\nkind = "cpu"\n[by_name.x]\nsizes = 1', "by_name.x: unknown key 'sizes'", "'size'"),
        ('name = "w"\nkind = "cpu"\non = 1', "on must be true or false, not 1", "correct"),
        ('name = "forbidden"\nkind = "cpu"', "the name is forbidden", "correct"),
        ("name = ", "is not valid TOML", "correct"),
    ],
)
def test_every_deviation_is_one_clear_error(tmp_path: Path, text: str, message: str, hint: str):
    with pytest.raises(MagnetonError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
    assert "whole.toml" in str(caught.value)
    assert hint in caught.value.hint


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(MagnetonError, match=r"cannot read .*none\.toml"):
        read_config(tmp_path / "none.toml", Whole)


def test_a_file_that_is_not_text(tmp_path: Path):
    path = tmp_path / "whole.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(MagnetonError, match="not valid TOML"):
        read_config(path, Whole)


def test_a_file_too_large_to_be_a_configuration(tmp_path: Path):
    with pytest.raises(MagnetonError, match="larger than"):
        read(tmp_path, "#" * 1_000_001)


def test_shipped_files_are_found_by_name():
    assert set(config_names("models")) >= {"llama", "gpt2"}
    assert config_path("models", "llama") == configs_folder() / "models" / "llama.toml"


def test_an_unknown_shipped_file_offers_the_nearest():
    with pytest.raises(MagnetonError) as caught:
        config_path("models", "lama")
    assert str(caught.value) == "unknown model 'lama'"
    assert "'llama'" in caught.value.hint
