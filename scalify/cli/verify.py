"""``scalify verify``."""

from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from scalify.cli.direct import ReadsDirectly
from scalify.cli.options import (
    ReportFormat,
    ReportFormatOption,
    VerboseOption,
    definition,
    memory_size,
    search_time,
    seconds,
)

EPILOG = """Examples:

\b
  scalify verify model.pt model-tp4.pt
  scalify verify model.pt 'model-tp4.rank*.pt'
  scalify verify tp1/graph.hlo.pb tp8/graph.hlo.pb --format json -o result.json

Exit status 0 if the programs are proved equal, 3 if they differ, 4 if neither is known.
"""


class VerifyCommand(ReadsDirectly):
    """The one command in which a tenth of a second matters."""

    readers = MappingProxyType({
        "candidate": list,
        "relations": Path,
        "define": list,
        "ops": Path,
        "output": Path,
        "output_format": ReportFormat,
        "time_limit": seconds,
        "memory_limit": memory_size,
        "search": search_time,
        "witness": Path,
    })  # fmt: skip


def verify(
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help="A graph; or a folder or quoted pattern: one per rank.")
    ],
    candidate: Annotated[
        list[str], typer.Argument(metavar="CANDIDATE", help="Likewise; or several files, one per rank.")
    ],
    relations: Annotated[
        Path | None,
        typer.Option("--relations", metavar="FILE", help="States how inputs lie on the ranks, *.toml."),
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option("--define", metavar="OP=GRAPH", help="What an unknown operation computes; repeatable."),
    ] = None,
    ops: Annotated[
        Path | None,
        typer.Option(
            "--ops",
            metavar="FILE",
            help="Reference functions of unknown operations, *.py: code, which the prover RUNS.",
        ),
    ] = None,
    output_format: ReportFormatOption = ReportFormat.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the result there too, as JSON."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", parser=seconds, help="Give up then.")
    ] = "600",  # pyright: ignore[reportArgumentType] - a default is read like what is given
    memory_limit: Annotated[
        int, typer.Option("--memory-limit", metavar="SIZE", parser=memory_size, help="Of the prover.")
    ] = "4GB",  # pyright: ignore[reportArgumentType]
    search: Annotated[
        float, typer.Option("--search", metavar="SECONDS", parser=search_time, help="For values that differ.")
    ] = "60",  # pyright: ignore[reportArgumentType]
    witness: Annotated[
        Path | None,
        typer.Option("--witness", metavar="FILE", help="Write these there; with -o, beside the result."),
    ] = None,
    memo: Annotated[bool, typer.Option("--memo/--no-memo", help="Prove equal regions once.")] = True,
    partition: Annotated[
        bool, typer.Option("--partition/--no-partition", help="Prove region by region.")
    ] = True,
    strict_precision: Annotated[
        bool,
        typer.Option("--strict-precision", help="Exit with 3 if a proved candidate rounds more, too."),
    ] = False,
    verbose: VerboseOption = False,
) -> None:
    """Prove that a program computes what another one does, on however many ranks.

    Equality is over the reals, under assumptions on how inputs lie on the ranks, which are printed.
    """
    from scalify.cli.progress import progress_bar
    from scalify.cli.sides import side_files
    from scalify.report.store import check_place
    from scalify.worker.client import Prover
    from scalify.worker.protocol import Request

    for place in (output, witness):
        if place is not None:
            check_place(place)
    request = Request(
        baseline=side_files([baseline]),
        candidate=side_files(candidate),
        relations=None if relations is None else str(relations),
        definitions=tuple(map(definition, define or ())),
        ops=None if ops is None else str(ops),
        partition=partition,
        memo=memo,
        duration_s=time_limit,
        memory_bytes=memory_limit,
        search_s=search,
    )
    with Prover(request) as prover:
        from scalify.report.output import deliver, exit_status  # while the prover works

        with progress_bar("proving") as progress:
            result = prover.result(progress)
    if witness is None and output is not None:
        witness = output.with_suffix(".witness.json")
    if result.witness is not None and witness is not None:
        from scalify.report.witness_file import keep

        result = keep(result, request, witness)
    deliver(result, output_format.value, output, full=verbose)
    raise typer.Exit(exit_status(result, strict_precision=strict_precision))
