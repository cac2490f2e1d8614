"""The commands by name."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from magneton import __version__
from magneton.cli import audit, calibrate, compare, doctor, match, record, recover, show, systems
from magneton.cli.boundary import ReportsUserErrors

app = typer.Typer(
    name="magneton",
    cls=ReportsUserErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 fine, 2 you can fix it, 3 a finding (--fail-on), 4 unresolved or not comparable.",
)
app.command(epilog=compare.EPILOG)(compare.compare)
app.command(epilog=record.EPILOG)(record.record)
app.command(epilog=audit.EPILOG)(audit.audit)
app.command(epilog=match.EPILOG)(match.match)
app.command()(recover.recover)
app.command()(show.show)
app.add_typer(systems.app)
app.command()(doctor.doctor)
app.command(epilog=calibrate.EPILOG)(calibrate.calibrate)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"magneton {__version__}")
        raise typer.Exit


@app.callback()
def magneton(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Which operations of an ML system spend energy that a rival does not, and on which line."""
    del version


def run() -> None:
    """Parse and run. A terminal that cannot show a character gets its escape, never a crash."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="magneton")
