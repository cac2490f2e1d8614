"""What a matching must be, whatever was matched."""

from collections import Counter

from soundness import unsound

from magneton.match import match
from magneton.match.model import Matching
from magneton.profile.model import Profile


def checked(baseline: Profile, candidate: Profile) -> Matching:
    """The matching, with every operator in one place and every region sound."""
    matching = match(baseline, candidate)
    assert held(matching, "baseline") == Counter(range(len(baseline.operators)))
    assert held(matching, "candidate") == Counter(range(len(candidate.operators)))
    assert sorted(k for group in matching.groups for k in group.regions) == list(range(len(matching.regions)))
    assert unsound(baseline, candidate, matching) == []
    return matching


def held(matching: Matching, side: str) -> Counter[int]:
    """How often each operator of ``side`` has a place."""
    places = Counter(int(op) for region in matching.regions for op in getattr(region, side))
    places.update(int(left.op_id) for left in getattr(matching, f"only_{side}"))
    return places
