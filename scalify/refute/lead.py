"""What can be said of programs that are too large to be run: whether smaller ones of the same kind differ.

In: a pair that a budget does not suffice for. Out: a sentence. It is a reason to look, no witness.
"""

from scalify.refute.budget import Search
from scalify.refute.compare import NO_VALUE, summary
from scalify.refute.cost import cost
from scalify.refute.pair import Pair, pair_of
from scalify.refute.search import search
from scalify.refute.shrink import shrink
from scalify.relate.relate import relate

RUNS = 10
"""Runs of each program that a refutation takes: one to find it, others to see how far rounding goes."""

LARGE = "the programs are too large to be run within the limits of the search"


def affordable(pair: Pair, budget: Search) -> bool:
    """Whether both programs can be run as often as a refutation takes, within the budget."""
    costs = cost(pair.baseline), cost(pair.candidate)
    in_time = RUNS * sum(each.duration_s for each in costs) <= budget.duration_s
    return in_time and max(each.memory_bytes for each in costs) <= budget.memory_bytes


def lead(pair: Pair, budget: Search) -> str:
    """What smaller programs show."""
    smaller = shrink(pair.baseline, pair.candidate, pair.relations)
    if smaller is None:
        return f"{LARGE}, and their shapes do not shrink"
    related = relate(*smaller)
    small = pair_of(*smaller, related)
    if related.undecided or not affordable(small, budget):
        return f"{LARGE}, and so are they with shapes shrunk as far as they go"
    found = search(small, related.outputs, budget).found
    differences = map(summary, found.differing if found else ())
    apart = [each for each in differences if each.pattern != NO_VALUE]
    if not apart:
        return f"{LARGE}; with shorter dimensions, no values were found on which they differ"
    first = max(apart, key=lambda each: each.differing / max(each.compared, 1))
    pattern = f", the candidate's being {first.pattern}" if first.pattern else ""
    return (
        f"{LARGE}; with shorter dimensions they differ: {first.differing} of {first.compared} elements of "
        f"{first.candidate}{pattern}"
    )
