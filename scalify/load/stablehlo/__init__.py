"""StableHLO: what JAX lowers to, as text or as a serialized portable artifact.

The package imports nothing; the reader, and jaxlib with it, is imported when it is called.
"""

from scalify.ir.graph import Graph

__all__ = ["read"]


def read(data: bytes, file: str = "") -> Graph:
    """The graph of a module's function ``main``, on all ranks of the mesh that it is written for.

    Operations that do not say where they come from are placed at their lines of ``file``, if it is named.
    """
    from scalify.load.stablehlo.graph import graph_of
    from scalify.load.stablehlo.operations import HANDLERS, unknown
    from scalify.load.stablehlo.parse import parsed
    from scalify.load.stablehlo.reader import Reader

    module = parsed(data)
    listed, outputs = Reader(module, file, HANDLERS, unknown).program()
    return graph_of(listed, outputs)
