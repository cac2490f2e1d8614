"""``scalify explain``."""

from pathlib import Path
from typing import Annotated

import typer

from scalify.cli.options import ReportFormat, ReportFormatOption

EPILOG = """Examples:

\b
  scalify verify model.pt model-tp4.pt -o result.json
  scalify explain result.json
  scalify explain result.json --format sarif > scalify.sarif
"""


def explain(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="What `verify -o` wrote, *.json.")],
    output_format: ReportFormatOption = ReportFormat.TEXT,
) -> None:
    """Print the report of a result again, in full, or as another program reads it."""
    from scalify.report.output import deliver
    from scalify.report.store import load

    deliver(load(result), output_format.value, None, full=True)
