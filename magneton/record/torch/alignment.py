"""Which call in the profiler's timeline is which traced operator?

In: the names of the traced operators of a step, in order, and the profiler's calls of one step, nested. Out:
pairs. The profiler shows composites around what the dispatch mode traced (``aten::linear`` around ``aten::t``
and ``aten::addmm``) and internals inside it, so calls are read in order, outer before inner; a call that is
the next traced operator is taken with all that is inside it, any other is opened.

    traced    t  addmm                     view
    calls     linear( t( transpose )  addmm( copy_ ) )   view

Both lists come from separate runs, and now and then one lacks what the other has. Where the next names
differ, both explanations (this call was not traced; the operators before it were not seen) are followed
for a while and the one that explains more of what comes is taken.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

HORIZON = 48  # calls looked at to choose between two explanations

# PyTorch takes another road to the same operator while a dispatch mode listens.
_SYNONYMS: Mapping[str, str] = {
    "aten::_reshape_alias": "aten::view",
    "aten::_unsafe_view": "aten::view",
}


def call_name(operator: str) -> str:
    """The profiler's name of a traced operator: "aten.addmm.default" is "aten::addmm"."""
    namespace, _, rest = operator.partition(".")
    name = f"{namespace}::{rest.partition('.')[0]}"
    return _SYNONYMS.get(name, name)


def align(operators: Sequence[str], calls: Sequence[str], ends: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Pairs (place in ``operators``, place in ``calls``), both ascending; calls in pairs do not nest.

    ``operators`` are traced names, ``calls`` the profiler's, ``ends[k]`` the place after all inside call k.
    """
    traced = [call_name(name) for name in operators]
    seen = [_SYNONYMS.get(name, name) for name in calls]
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(traced):
        places[name].append(place)
    pairs: list[tuple[int, int]] = []
    wanted, call = 0, 0
    while wanted < len(traced) and call < len(seen):
        found = _next(places[seen[call]], wanted)
        if found is None or (found > wanted and not _worth(traced, seen, ends, wanted, found, call)):
            call += 1
            continue
        pairs.append((found, call))
        wanted, call = found + 1, ends[call]
    return tuple(pairs)


def _next(places: Sequence[int], start: int) -> int | None:
    index = bisect_left(places, start)
    return places[index] if index < len(places) else None


def _worth(
    traced: Sequence[str], seen: Sequence[str], ends: Sequence[int], wanted: int, found: int, call: int
) -> bool:
    """Does giving up the operators ``wanted`` to ``found`` explain more than passing over this call?"""
    stop = min(len(seen), ends[call] + HORIZON)
    given_up = 1 + _explained(traced, seen, ends, found + 1, ends[call], stop)
    return given_up > _explained(traced, seen, ends, wanted, call + 1, stop)


def _explained(
    traced: Sequence[str], seen: Sequence[str], ends: Sequence[int], wanted: int, call: int, stop: int
) -> int:
    """How many of the calls up to ``stop`` are the next operators, without any gap among the operators."""
    first = wanted
    while call < stop and wanted < len(traced):
        if seen[call] == traced[wanted]:
            wanted, call = wanted + 1, ends[call]
        else:
            call += 1
    return wanted - first
