"""``magneton systems``: what can be run, and the environments in which it runs."""

from typing import Annotated

import typer

from magneton.cli.options import DeviceOption, Format, FormatOption, QuietOption, YesOption
from magneton.errors import MagnetonError

app = typer.Typer(name="systems", add_completion=False, rich_markup_mode=None, invoke_without_command=True)
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A system, as `magneton systems` lists it.")
]


@app.callback()
def systems(context: typer.Context, output_format: FormatOption = Format.TEXT) -> None:
    """List the systems that can be run, their options and their environments; install and remove those.

    A system that this interpreter does not have gets an environment of its own in the cache folder, made
    by the first command that needs it, or beforehand by `install`.
    """
    if context.invoked_subcommand is not None:
        if output_format is not Format.TEXT:
            command = context.invoked_subcommand
            raise MagnetonError("--format stands too early", hint=f"write it after {command}")
        return
    from magneton.inventory import list_systems
    from magneton.report.output import print_result

    print_result(list_systems(), output_format.value)


@app.command()
def install(
    name: NameArgument,
    device: DeviceOption = None,
    yes: YesOption = False,
    output_format: FormatOption = Format.TEXT,
    quiet: QuietOption = False,
) -> None:
    """Make the environment of a system now; one that was begun and interrupted goes on."""
    from magneton.cli.conversation import conversation_with_user
    from magneton.cli.progress import progress_bar
    from magneton.inventory import install_system
    from magneton.report.output import print_result

    with progress_bar(quiet=quiet) as progress:
        shown = install_system(name, device, conversation_with_user(yes=yes), progress)
    print_result(shown, output_format.value)


@app.command()
def show(name: NameArgument, output_format: FormatOption = Format.TEXT) -> None:
    """Show what a system needs, how it is installed, and the versions in its environments."""
    from magneton.inventory import show_system
    from magneton.report.output import print_result

    print_result(show_system(name), output_format.value)


@app.command()
def remove(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The system.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Of every system, also of earlier releases.")
    ] = False,
    yes: YesOption = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Remove every environment of a system, with its downloads and logs. One that is in use stays."""
    from magneton.cli.conversation import conversation_with_user
    from magneton.inventory import remove_environments
    from magneton.report.output import print_result

    removed = remove_environments(name, everything, conversation_with_user(yes=yes))
    print_result(removed, output_format.value)
