"""Proves two computational graphs equivalent, or says what stands in the way.

    >>> verdict = scalify.verify("model.pt", "model-tp4.pt")

Nothing heavy is imported before something is verified.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scalify.prove.verify import Options
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
    options: "Options | None" = None,
    progress: "Callable[[int, int], None] | None" = None,
) -> "Verdict":
    """Prove that the candidate's outputs make up the baseline's: Proved, or Unknown with what is in the way.

    A side is a graph, the path of one, or a path for each of its ranks; ``relations`` is a file that states
    how inputs lie on the ranks, ``definitions`` are files of graphs by the unknown operations that they
    define. This runs here and now, bounded by the options' budget alone; the command of this name runs it in
    a process of its own, with limits of time and memory.
    """
    from scalify.verification import verification

    return verification(
        baseline,
        candidate,
        relations=relations,
        definitions=definitions,
        options=options,
        progress=progress,
    ).verdict
