"""What the pairing of a region rests on: the weakest evidence among what it produces."""

from collections.abc import Sequence
from typing import Literal

from magneton.match.model import Evidence, Region, ValuePair
from magneton.match.phases import STRENGTH

Ground = Literal[
    Evidence,
    "consumes",  # produces nothing that is recognised; both sides read the same
    "serves",  # shared; both sides serve mostly the same regions
]

# An output is paired for being the last; sources are as good as values, and never dropped.
_ORDER: dict[Evidence, int] = {
    "output": -1,
    **STRENGTH,
    "input": STRENGTH["value"],
    "parameter": STRENGTH["value"],
}


def ground_of(region: Region, pairs: Sequence[ValuePair]) -> Ground:
    """``pairs`` are those that the region's ``produces`` index."""
    if region.shared:
        return "serves"
    produced: list[Evidence] = [pairs[k].evidence for k in region.produces]
    return min(produced, key=_ORDER.__getitem__) if produced else "consumes"
