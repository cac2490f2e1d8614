"""Options read directly mean what typer says they mean."""

from pathlib import Path
from typing import Any

import pytest
import typer
from scalify_commands import scalify
from typer.main import get_command

from scalify.cli.direct import ReadsDirectly
from scalify.cli.verify import VerifyCommand, verify

ARGUMENTS = (
    ("one.scg", "two.scg"),
    ("one.scg", "two.scg", "three.scg", "-v"),
    ("--no-memo", "one.scg", "--no-partition", "two.scg", "--memo"),
    ("one.scg", "two.scg", "--relations", "r.toml", "-o", "out.json", "--format", "json"),
    ("one.scg", "two.scg", "--time-limit=1.5", "--memory-limit", "1GiB"),
    ("--", "-one.scg", "two.scg"),
)
MISTAKES = (
    ("one.scg",),
    ("one.scg", "two.scg", "--format", "xml"),
    ("one.scg", "two.scg", "--time-limit", "soon"),
    ("one.scg", "two.scg", "--time-limit", "nan"),
    ("one.scg", "two.scg", "--time-limit", "inf"),
    ("one.scg", "two.scg", "--memory-limit"),
    ("one.scg", "two.scg", "--nonsense"),
    ("one.scg", "two.scg", "--memo=yes"),
)


def read(cls: type[ReadsDirectly] | None, args: tuple[str, ...]) -> dict[str, Any]:
    app = typer.Typer()
    app.command(cls=cls)(verify)
    command: Any = get_command(app)
    return command.make_context("verify", list(args)).params


@pytest.mark.parametrize("args", ARGUMENTS)
def test_values_are_those_of_typer(args: tuple[str, ...]):
    direct, typers = read(VerifyCommand, args), read(None, args)
    assert direct == typers
    assert {name: type(value) for name, value in direct.items()} == {
        name: type(value) for name, value in typers.items()
    }


def test_defaults_are_read_like_what_is_given():
    values = read(VerifyCommand, ("one.scg", "two.scg"))
    assert (values["time_limit"], values["memory_limit"]) == (600.0, 4_000_000_000)
    assert (values["relations"], values["memo"]) == (None, True)
    assert read(VerifyCommand, ("a", "b", "-o", "c"))["output"] == Path("c")


@pytest.mark.parametrize("args", MISTAKES)
def test_mistakes_are_answered_by_typer(args: tuple[str, ...]):
    with pytest.raises(Exception) as direct:
        read(VerifyCommand, args)
    with pytest.raises(type(direct.value)) as typers:
        read(None, args)
    assert str(direct.value) == str(typers.value)
    assert scalify("verify", *args).code == 2


@pytest.mark.parametrize("args", [("--help",), ("verify", "--help"), ("verify", "a", "b", "-h")])
def test_help_is_help(args: tuple[str, ...]):
    left = scalify(*args)
    assert left.code == 0
    assert left.stdout.startswith("Usage: scalify")
