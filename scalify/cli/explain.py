"""``scalify explain``."""

from pathlib import Path
from typing import Annotated

import typer


def explain(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What `verify -o` wrote, *.json.")],
) -> None:
    """Print the report of a result again, in full."""
    from scalify.report.output import deliver
    from scalify.report.store import load

    deliver(load(result), "text", None, full=True)
