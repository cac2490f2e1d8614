"""Proves two computational graphs equivalent, or says what stands in the way.

    >>> verdict = scalify.verify("model.pt", "model-tp4.pt")

A side is a file, a file for each rank, or a program in memory: an exported program, an FX ``GraphModule``,
or a module with arguments to call it with::

    >>> verdict = scalify.verify((model, (x,)), torch.export.export(fused, (x,)))
    >>> verdict = scalify.verify("model.onnx", graph_module)

What is read, and how: docs/scalify-front-ends.md. Nothing heavy is imported before something is verified.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scalify.prove.verify import Options
    from scalify.refute.budget import Search
    from scalify.verdict import Verdict
    from scalify.verification import AnyPath, Side

__all__ = ["__version__", "verify"]

__version__ = "0.1.0"


def verify(
    baseline: "Side",
    candidate: "Side",
    *,
    relations: "AnyPath | None" = None,
    definitions: "Mapping[str, Sequence[AnyPath]] | None" = None,
    ops: "AnyPath | None" = None,
    options: "Options | None" = None,
    search: "Search | None" = None,
    progress: "Callable[[int, int], None] | None" = None,
) -> "Verdict":
    """Prove that the candidate's outputs make up the baseline's: Proved, Refuted with values on which they
    differ, or Unknown with what is in the way.

    A side is a graph, the path of one, or a path for each of its ranks; or an ``ExportedProgram``, a
    ``GraphModule``, or ``(module, args)``. ``relations`` is a file that states how inputs lie on the ranks,
    ``definitions`` are files of graphs by the unknown operations that they define. ``ops`` is a Python file
    of reference functions of such operations: code, which is run. All happens here and now, bounded by the
    options' budget alone; the command of this name does it in a process of its own, with limits of time and
    memory.
    """
    from scalify.refute.budget import Search
    from scalify.verification import verification

    return verification(
        baseline,
        candidate,
        relations=relations,
        definitions=definitions,
        ops=ops,
        options=options,
        search=Search() if search is None else search,
        progress=progress,
    ).verdict
