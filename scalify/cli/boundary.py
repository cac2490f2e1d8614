"""The one place where what the user can put right becomes text and an exit status."""

import os
import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from scalify.errors import EXIT_INTERRUPTED, ScalifyError
from scalify.report.escape import visible_lines
from scalify.worker.crashed import ProverCrashed

EXIT_BUG = 1  # as for any traceback
EXIT_BROKEN_PIPE = 141  # what a shell says of a program whose reader went away


class ReportsUserErrors(TyperGroup):
    """Prints ``error:`` and ``hint:`` on standard error, without a traceback. Bugs keep theirs; of one in
    the worker it is the worker's."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ScalifyError as error:
            _tell("error", str(error), error.hint)
            raise typer.Exit(error.exit_code) from None
        except ProverCrashed as crash:
            typer.echo(visible_lines(str(crash)), err=True)
            _tell(
                "error",
                "the prover failed",
                "this is a bug in scalify: please report it with the lines above",
            )
            raise typer.Exit(EXIT_BUG) from None
        except KeyboardInterrupt:
            _tell("error", "stopped", "nothing was decided")
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
