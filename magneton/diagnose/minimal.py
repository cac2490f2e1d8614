"""The fewest changes that close a gap, found by trying.

A trial is expensive (a recording each), and may answer that it cannot tell. Single changes are tried first,
in the order given, for one setting is behind most gaps. Where none suffices but all together do, what can be
left out is left out, the larger parts first (delta debugging: Zeller and Hildebrandt, "Simplifying and
isolating failure-inducing input", 2002).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Answer = Literal["closes", "stays", "cannot tell"]
Chosen = tuple[int, ...]  # places of changes in the order given, ascending


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """``chosen`` closes the gap, and leaving any one change out of it does not; empty: nothing was found.

    ``tried`` holds each trial once, in order. ``cut_short``: the trials allowed were used up before.
    """

    chosen: Chosen
    tried: tuple[tuple[Chosen, Answer], ...]
    cut_short: bool


class _SpentError(Exception):
    """No trial is left."""


class _Trials:
    def __init__(self, ask: Callable[[Chosen], Answer], most: int) -> None:
        self.answers: dict[Chosen, Answer] = {}
        self._ask = ask
        self._most = most

    def closes(self, chosen: Chosen) -> bool:
        if chosen not in self.answers:
            if len(self.answers) == self._most:
                raise _SpentError
            self.answers[chosen] = self._ask(chosen)
        return self.answers[chosen] == "closes"


def fewest(count: int, ask: Callable[[Chosen], Answer], *, most: int = 20) -> Search:
    """Which of ``count`` changes, applied together, close the gap.

    ``ask`` tries some of them, at most ``most`` times. One that cannot tell counts as one that stays.
    """
    trials = _Trials(ask, most)
    found: Chosen = ()
    cut_short = False
    try:
        singles = ((place,) for place in range(count))
        found = next((single for single in singles if trials.closes(single)), ())
        everything = tuple(range(count))
        if not found and count > 1 and trials.closes(everything):
            found = everything
            for smaller in _smaller(everything, trials.closes):
                found = smaller
    except _SpentError:
        cut_short = True
    return Search(chosen=found, tried=tuple(trials.answers.items()), cut_short=cut_short)


def _smaller(chosen: Chosen, closes: Callable[[Chosen], bool]) -> Iterator[Chosen]:
    """Ever smaller parts of ``chosen`` that still close the gap."""
    pieces = 2
    while len(chosen) > 1:
        parts = _parts(chosen, min(pieces, len(chosen)))
        without = [tuple(place for place in chosen if place not in part) for part in parts]
        kept = next((part for part in (*parts, *without) if part != chosen and closes(part)), None)
        if kept is not None:
            pieces = 2 if kept in parts else max(2, pieces - 1)
            chosen = kept
            yield chosen
        elif pieces >= len(chosen):
            return
        else:
            pieces *= 2


def _parts(chosen: Chosen, pieces: int) -> list[Chosen]:
    """``pieces`` of them, as equal as can be."""
    edges = [round(len(chosen) * k / pieces) for k in range(pieces + 1)]
    return [chosen[low:high] for low, high in pairwise(edges)]
