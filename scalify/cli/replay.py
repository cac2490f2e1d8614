"""``scalify replay``."""

from pathlib import Path
from typing import Annotated

import typer

from scalify.cli.options import ReportFormat, ReportFormatOption, VerboseOption, memory_size, seconds

EPILOG = """Examples:

\b
  scalify replay model-tp4.witness.json
  scalify replay model-tp4.witness.json model.pt model-tp4-fixed.pt

Exit status 3 if the programs still differ on these values, 0 if they agree, which proves nothing of others.
"""


def replay(
    witness: Annotated[Path, typer.Argument(metavar="WITNESS", help="What `verify` wrote, *.witness.json.")],
    baseline: Annotated[
        str | None, typer.Argument(metavar="[BASELINE]", help="In the place of the file it names.")
    ] = None,
    candidate: Annotated[list[str] | None, typer.Argument(metavar="[CANDIDATE]...", help="Likewise.")] = None,
    ops: Annotated[
        Path | None,
        typer.Option("--ops", metavar="FILE", help="Reference functions, as for verify. The file is RUN."),
    ] = None,
    output_format: ReportFormatOption = ReportFormat.TEXT,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", parser=seconds, help="Give up then.")
    ] = "600",  # pyright: ignore[reportArgumentType] - a default is read like what is given
    memory_limit: Annotated[
        int, typer.Option("--memory-limit", metavar="SIZE", parser=memory_size, help="Of the run.")
    ] = "4GB",  # pyright: ignore[reportArgumentType]
    verbose: VerboseOption = False,
) -> None:
    """Run both programs again on the values that a refutation found.

    The programs are read from the files that the witness names, or from those given.
    """
    from scalify.cli.sides import side_files
    from scalify.errors import EXIT_OK
    from scalify.report.output import deliver, exit_status
    from scalify.verdict import Reason
    from scalify.worker.client import Prover
    from scalify.worker.protocol import Request

    request = Request(
        baseline=side_files([baseline] if baseline else []),
        candidate=side_files(candidate or ()),
        relations=None,
        ops=None if ops is None else str(ops),
        partition=True,
        memo=True,
        duration_s=time_limit,
        memory_bytes=memory_limit,
        replay=str(witness),
    )
    with Prover(request) as prover:
        result = prover.result()
    deliver(result, output_format.value, None, full=verbose)
    raise typer.Exit(EXIT_OK if result.reason is Reason.AGREED else exit_status(result))
