"""Where do two call paths part? The last function both sides were in on their way to a region's operators.

In: the distinct stacks of either side, outermost frame first. Out: the deepest agreement among all pairs:
one line that called different functions (a dispatch), or different lines of one function (a branch). Repeated
layers share their stacks, and so count once.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from magneton.profile.model import Frame, OpId, Profile, Stack

MOST_STACKS = 256  # of either side; a profile comes from anywhere
_PASSES_ON = re.compile(r"\(.*\*\w+.*\*\*\w+")  # a call that hands on whatever it was given


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Both sides were in ``function``. Equal lines: a dispatch. Unequal ones: a branch.

    ``baseline_calls`` and ``candidate_calls``: the frames further in; empty where the line itself runs
    the operator.
    """

    function: str
    file: str
    baseline_line: int
    candidate_line: int
    baseline_calls: tuple[Frame, ...]
    candidate_calls: tuple[Frame, ...]
    common: tuple[Frame, ...]  # from outside; the last one is of ``function``, with the baseline's line

    @property
    def is_dispatch(self) -> bool:
        return self.baseline_line == self.candidate_line


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDeviation:
    reason: str


def stacks_of(profile: Profile, operators: Iterable[OpId]) -> tuple[Stack, ...]:
    """The distinct stacks of ``operators``, in the order of their first use."""
    ids = dict.fromkeys(profile.operators[op].stack_id for op in operators)
    return tuple(profile.stacks[stack_id] for stack_id in ids)


def find_deviation(baseline: Iterable[Stack], candidate: Iterable[Stack]) -> Deviation | NoDeviation:
    """The deepest place at which stacks of both sides part; among equally deep ones that of most pairs."""
    sides = _told(baseline), _told(candidate)
    for name, stacks in zip(("baseline", "candidate"), sides, strict=True):
        if not stacks:
            return NoDeviation(reason=f"no Python stack on the {name}'s side")
    shared = set(sides[0]) & set(sides[1])
    ours, theirs = ([stack for stack in side if stack not in shared] or side for side in sides)
    if set(ours) == set(theirs):
        return NoDeviation(reason="both sides run the same lines")
    pairs = list(product(ours[:MOST_STACKS], theirs[:MOST_STACKS]))
    parted = [found for one, other in pairs if (found := _part(one, other)) is not None]
    if not parted:
        return NoDeviation(reason="different programs: no common function")
    deepest = max(_depth(found) for found in parted)
    votes = Counter(_place(found) for found in parted if _depth(found) == deepest)
    chosen = votes.most_common(1)[0][0]
    return next(found for found in parted if _depth(found) == deepest and _place(found) == chosen)


def _told(stacks: Iterable[Stack]) -> list[tuple[Frame, ...]]:
    return list(dict.fromkeys(stack.frames for stack in stacks if stack.frames))


def _place(found: Deviation) -> tuple[str, str, int, int]:
    return found.file, found.function, found.baseline_line, found.candidate_line


def _depth(found: Deviation) -> tuple[int, bool]:
    return len(found.common), found.is_dispatch


def _part(baseline: Sequence[Frame], candidate: Sequence[Frame]) -> Deviation | None:
    here, there = _meet(baseline, candidate)
    common: list[tuple[Frame, int, int]] = []
    while here < len(baseline) and there < len(candidate):
        one, other = baseline[here], candidate[there]
        if not _same_function(one, other):
            if not (_is_generic(one) or _is_generic(other)):
                break
            here += _is_generic(one)
            there += _is_generic(other)
            continue
        here, there = here + 1, there + 1
        common.append((one, here, there))
        if one.line != other.line:
            return _deviation(common, other.line, baseline, candidate)
    if here == len(baseline) and there == len(candidate):
        return None
    # Which function a wrapper calls was decided where it was wrapped: what matters is who called it.
    while len(common) > 1 and _is_generic(common[-1][0]):
        common.pop()
    return _deviation(common, common[-1][0].line, baseline, candidate) if common else None


def _deviation(
    common: Sequence[tuple[Frame, int, int]],
    candidate_line: int,
    baseline: Sequence[Frame],
    candidate: Sequence[Frame],
) -> Deviation:
    last, here, there = common[-1]
    outer = (frame for frame, _, _ in common[:-1] if not _is_generic(frame))
    return Deviation(
        function=last.function,
        file=last.file,
        baseline_line=last.line,
        candidate_line=candidate_line,
        baseline_calls=tuple(baseline[here:]),
        candidate_calls=tuple(candidate[there:]),
        common=(*outer, last),
    )


def _meet(baseline: Sequence[Frame], candidate: Sequence[Frame]) -> tuple[int, int]:
    """The outermost frames of one function. What is further out may be two users' own scripts."""
    first: dict[tuple[str, str], int] = {}
    for place, frame in enumerate(candidate):
        first.setdefault((frame.file, frame.function), place)
    meetings = (
        (here, first[frame.file, frame.function])
        for here, frame in enumerate(baseline)
        if (frame.file, frame.function) in first
    )
    return min(meetings, key=sum, default=(len(baseline), len(candidate)))


def _same_function(one: Frame, other: Frame) -> bool:
    return (one.file, one.function) == (other.file, other.function)


def _is_generic(frame: Frame) -> bool:
    """A wrapper, as decorators make them: it calls what it encloses with whatever it was given."""
    return "<locals>" in frame.function and _PASSES_ON.search(frame.code) is not None
