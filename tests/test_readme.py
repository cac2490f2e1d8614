"""What the README tells people to type exists."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from magneton.cli.app import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = tuple(dict.fromkeys(re.findall(r"^\$ magneton (.*)$", README, re.MULTILINE)))


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_one_that_the_program_understands(line: str):
    group = typer.main.get_command(app)
    name, *arguments = shlex.split(line)
    assert isinstance(group, TyperGroup)
    command = group.get_command(typer.Context(group), name)
    assert command is not None, f"no command {name}"
    command.make_context(name, arguments)  # raises where an option or an argument is unknown


def test_every_target_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z]+)", README, re.MULTILINE)) <= targets
    assert {"demo", "test", "check", "clean"} <= targets


def test_every_link_leads_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
