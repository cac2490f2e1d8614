"""The one place where what the user can put right becomes text and an exit status."""

import os
import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from magneton.errors import EXIT_INTERRUPTED, MagnetonError
from magneton.report.escape import visible_lines

EXIT_BROKEN_PIPE = 141  # what a shell says of a program whose reader went away


class ReportsUserErrors(TyperGroup):
    """Prints ``error:`` and ``hint:`` on standard error, without a traceback. Bugs keep theirs."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except MagnetonError as error:
            _tell("error", str(error), error.hint)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            _tell("error", "stopped", "nothing was kept; --save keeps the profiles of a comparison")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            _leave_the_pipe()


def _tell(kind: str, message: str, hint: str) -> None:
    typer.secho(f"{kind}: ", fg="red", bold=True, nl=False, err=True)
    typer.echo(visible_lines(message), err=True)
    typer.secho("hint: ", bold=True, nl=False, err=True)
    typer.echo(visible_lines(hint), err=True)


def _leave_the_pipe() -> NoReturn:
    """Nobody reads standard output any more: keep the interpreter from complaining while it shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(EXIT_BROKEN_PIPE)
