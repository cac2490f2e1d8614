"""The command line from outside, run in this process."""

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from magneton.cli.app import app


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a command printed, and the status it left with."""

    code: int
    stdout: str
    stderr: str


def magneton(*args: str | Path, columns: int = 80) -> Left:
    """A bug in a command is raised, not turned into a status."""
    result = CliRunner().invoke(
        app, [str(arg) for arg in args], prog_name="magneton", env={"COLUMNS": str(columns)}
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Left(code=result.exit_code, stdout=result.stdout, stderr=result.stderr)


def told(left: Left, *needed: str, code: int) -> None:
    """One error and one hint on standard error, nothing on standard output."""
    assert left.code == code, left.stderr
    assert left.stdout == ""
    for each in (*needed, "error: ", "hint: "):
        assert each in left.stderr
