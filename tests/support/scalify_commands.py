"""The command line from outside: in this process where that says all, else in one of its own."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from scalify.cli.app import app


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a command printed, and the status it left with."""

    code: int
    stdout: str
    stderr: str


def scalify(*args: str | Path, columns: int = 80) -> Left:
    """In this process. A bug in a command is raised, not turned into a status."""
    result = CliRunner().invoke(
        app, [str(arg) for arg in args], prog_name="scalify", env={"COLUMNS": str(columns)}
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Left(code=result.exit_code, stdout=result.stdout, stderr=result.stderr)


def command(*args: str | Path) -> list[str]:
    """The same for a process of its own."""
    return [sys.executable, "-c", "from scalify.cli import main; main()", *map(str, args)]


def scalify_process(*args: str | Path) -> Left:
    """In a process of its own."""
    done = subprocess.run(command(*args), capture_output=True, text=True, timeout=120)
    return Left(code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def told(left: Left, *needed: str, code: int = 2) -> None:
    """One error and one hint on standard error, nothing on standard output."""
    assert left.code == code, left.stderr
    assert left.stdout == ""
    for each in (*needed, "error: ", "hint: "):
        assert each in left.stderr
    assert "Traceback" not in left.stderr
