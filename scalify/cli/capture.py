"""``scalify capture``."""

from pathlib import Path
from typing import Annotated

import typer

from scalify.cli.options import mesh_axes

EPILOG = """Examples:

\b
  scalify capture model.py:build -o model.pt
  scalify capture model_tp.py:build -o model-tp4.scg --mesh tp=4
  scalify capture model_jax.py:build -o model.scg

This runs the code in the module. On a mesh, build(rank, groups) is called once for every rank. A function of
JAX brings the mesh of its shard_map.
"""


def capture(
    target: Annotated[
        str, typer.Argument(metavar="MODULE.py:BUILD", help="The function that builds the model.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The graph to write.")],
    mesh: Annotated[
        str, typer.Option("--mesh", metavar="AXES", help="The ranks, slowest axis first: tp=4,dp=2.")
    ] = "",
    per_rank: Annotated[
        bool, typer.Option("--per-rank", help="A file for every rank, not one for all.")
    ] = False,
    backward: Annotated[
        bool, typer.Option("--backward", help="Gradients of its parameters are outputs too.")
    ] = False,
) -> None:
    """Write the graph of a PyTorch model or a JAX function. No weights are needed: shapes will do."""
    from scalify.capture import capture as capture_graph
    from scalify.cli.progress import progress_bar
    from scalify.ir.mesh import Mesh

    notes: list[str] = []
    ranks = Mesh(axes=mesh_axes(mesh) if mesh else ())
    with progress_bar("capturing") as progress:
        files = capture_graph(
            target,
            output,
            mesh=ranks,
            per_rank=per_rank,
            backward=backward,
            progress=progress,
            tell=notes.append,
        )
    for note in notes:
        typer.echo(note, err=True)
    for file in files:
        typer.echo(f"wrote {file}", err=True)
