"""The commands by name."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from scalify import __version__
from scalify.cli import capture, explain, replay, show, verify
from scalify.cli.boundary import ReportsUserErrors

app = typer.Typer(
    name="scalify",
    cls=ReportsUserErrors,
    no_args_is_help=True,
    add_help_option=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 proved, 2 you can fix it, 3 refuted, 4 unknown.",
)
app.command(cls=verify.VerifyCommand, epilog=verify.EPILOG)(verify.verify)
app.command(epilog=capture.EPILOG)(capture.capture)
app.command()(show.show)
app.command(epilog=explain.EPILOG)(explain.explain)
app.command(epilog=replay.EPILOG)(replay.replay)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"scalify {__version__}")
        raise typer.Exit


def _print_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        typer.echo(context.get_help())
        raise typer.Exit


@app.callback()
def scalify(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    # Ours, with a default: typer's own help option is read in the way that `cli.direct` avoids.
    help_: Annotated[
        bool,
        typer.Option("--help", "-h", callback=_print_help, is_eager=True, help="Show this message and exit."),
    ] = False,
) -> None:
    """Whether two programs of an ML system compute the same, on however many ranks they run."""
    del version, help_


def run() -> None:
    """Parse and run. A terminal that cannot show a character gets its escape, never a crash."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="scalify")
