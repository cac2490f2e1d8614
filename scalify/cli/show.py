"""``scalify show``."""

from typing import Annotated

import typer

from scalify.cli.options import Format, FormatOption


def show(
    graph: Annotated[list[str], typer.Argument(metavar="GRAPH", help="A graph, or one for every rank.")],
    as_text: Annotated[
        bool, typer.Option("--text", help="The whole graph, in the form of *.scg files.")
    ] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Show what a graph holds: operations, ranks, inputs and outputs."""
    from pathlib import Path

    from scalify.cli.sides import side_files
    from scalify.load import load_side
    from scalify.report.contents import contents_of, print_contents, print_whole

    loaded = load_side([Path(file) for file in side_files(graph)])
    if as_text:
        print_whole(loaded)
    else:
        print_contents(contents_of(loaded), output_format.value)
