"""``magneton recover``."""

from pathlib import Path
from typing import Annotated

import typer


def recover(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="What a recording left behind, as its error named it.")
    ],
    save: Annotated[
        Path, typer.Option("--save", metavar="FOLDER", help="Keep the profiles there, one for each side.")
    ],
) -> None:
    """Make profiles of what was measured before a recording failed or was stopped."""
    from magneton.sides import recover_sides

    for path in recover_sides(folder, save=save):
        typer.echo(f"wrote {path}", err=True)
