"""Names in a graph that holds every rank's program side by side, on one device.

Such a graph says so (``Graph.unrolled``), has no mesh, and each of its inputs and outputs is of one rank,
which its name ends in: ``w@rank2``.
"""

import re

MOST_RANKS = 64

_RANKED = re.compile(r"(.*)@rank(\d{1,5})", re.ASCII | re.DOTALL)


def ranked(name: str, rank: int) -> str:
    """What an input or output of one rank is called beside those of others."""
    return f"{name}@rank{rank}"


def unranked(name: str) -> tuple[str, int] | None:
    """The name as the rank's own program has it, and the rank; None where it is of no rank."""
    found = _RANKED.fullmatch(name)
    return (found[1], int(found[2])) if found else None
