"""Small programs in files: a two-layer perceptron on one device, and on as many ranks as one likes."""

from pathlib import Path

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph
from scalify.ir.mesh import SINGLE, Mesh, groups_along
from scalify.ir.text import save

ROWS, WIDE, HIDDEN = 4, 8, 32


def perceptron(*, ranks: int = 1, reduced: bool = True, op: str = "relu", layers: int = 1) -> Graph:
    """``y = act(x up) down``, columns and rows sharded over ranks; not ``reduced``: the classical mistake."""
    mesh = SINGLE if ranks == 1 else Mesh(axes=(("tp", ranks),))
    build = GraphBuilder("perceptron", mesh=mesh)
    value = build.input("x", "f32", (ROWS, WIDE))
    for layer in range(layers):
        with build.scope(f"layers.{layer}"):
            up = build.input(f"layers.{layer}.up", "f32", (WIDE, HIDDEN // ranks), role="parameter")
            down = build.input(f"layers.{layer}.down", "f32", (HIDDEN // ranks, WIDE), role="parameter")
            wide = build.add("einsum", value, up, spec="bi,io->bo")
            active = (
                build.add(op, wide)
                if op == "relu"
                else build.add(
                    "opaque", wide, target=op, config="", shape=build.type(wide).shape, dtype="f32"
                )
            )
            value = build.add("einsum", active, down, spec="bi,io->bo")
            if ranks > 1 and reduced:
                value = build.add("all_reduce", value, kind="sum", groups=groups_along(mesh, ("tp",)))
    build.output("y", value)
    return build.graph()


def written(folder: Path, name: str, graph: Graph) -> Path:
    """The graph in a file of that name."""
    path = folder / f"{name}.scg"
    save(graph, path)
    return path
