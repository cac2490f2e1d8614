"""``magneton show``."""

from pathlib import Path
from typing import Annotated

import typer

from magneton.cli.options import Format, FormatOption, TopOption


def show(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE", help="A recorded profile, *.mgn.")],
    top: TopOption = 10,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Show what one profile says: its origin, what a step costs, and which operators take it."""
    from magneton.profile.store import load
    from magneton.report.output import print_result
    from magneton.report.summary import summarise_profile

    print_result(summarise_profile(load(profile)), output_format.value, top=top)
