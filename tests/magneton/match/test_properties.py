"""What holds for any two profiles."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from programs import Step, programs, relabelled, written
from soundness import unsound

from magneton.match import match
from magneton.match.model import Matching
from magneton.match.quotient import cycles
from magneton.profile.model import Profile

# A norm of x and one of x + 0 compute one value twice from two generations of another: the known exception.
ordinary = programs.map(lambda program: [step for step in program if step.kind != "zero"])
styles = st.lists(st.booleans(), min_size=1, max_size=5)


def shape_of(matching: Matching, *, turned: bool = False) -> set[tuple[frozenset[int], frozenset[int]]]:
    regions = ((frozenset(r.baseline), frozenset(r.candidate)) for r in matching.regions)
    return {(y, x) if turned else (x, y) for x, y in regions}


def held(profile: Profile, matching: Matching, side: str) -> Counter[int]:
    places = Counter(int(op) for region in matching.regions for op in getattr(region, side))
    places.update(int(left.op_id) for left in getattr(matching, f"only_{side}"))
    return places


@settings(max_examples=60, deadline=None)
@given(programs, styles)
def test_a_profile_against_itself_pairs_every_operator_with_itself(program: list[Step], pieces: list[bool]):
    profile = written(program, pieces)
    matching = match(profile, profile)
    assert not matching.only_baseline
    assert not matching.only_candidate
    assert all(region.baseline == region.candidate for region in matching.regions)
    assert all(pair.baseline == pair.candidate for pair in matching.pairs)


@settings(max_examples=60, deadline=None)
@given(programs, styles, styles)
def test_each_operator_is_in_one_place(program: list[Step], first: list[bool], second: list[bool]):
    baseline, candidate = written(program, first), written(program, second)
    matching = match(baseline, candidate)
    assert held(baseline, matching, "baseline") == Counter(range(len(baseline.operators)))
    assert held(candidate, matching, "candidate") == Counter(range(len(candidate.operators)))
    assert sorted(k for group in matching.groups for k in group.regions) == list(range(len(matching.regions)))


@settings(max_examples=60, deadline=None)
@given(programs, styles, styles)
def test_sides_turn_with_the_arguments(program: list[Step], first: list[bool], second: list[bool]):
    baseline, candidate = written(program, first), written(program, second)
    assert shape_of(match(baseline, candidate)) == shape_of(match(candidate, baseline), turned=True)


@settings(max_examples=40, deadline=None)
@given(programs, styles, styles, st.integers(0, 9))
def test_ids_of_values_do_not_matter(program: list[Step], first: list[bool], second: list[bool], seed: int):
    baseline, candidate = written(program, first), written(program, second)
    expected = match(baseline, candidate)
    found = match(relabelled(baseline, seed), relabelled(candidate, seed + 1))
    assert shape_of(found) == shape_of(expected)
    assert found.only_baseline == expected.only_baseline
    assert found.only_candidate == expected.only_candidate


@settings(max_examples=60, deadline=None)
@given(ordinary, styles, styles)
def test_both_sides_of_a_region_read_and_make_the_same(
    program: list[Step], first: list[bool], second: list[bool]
):
    baseline, candidate = written(program, first), written(program, second)
    assert unsound(baseline, candidate, match(baseline, candidate)) == []


def links(profile: Profile, regions: list[tuple[int, ...]]) -> set[tuple[int, int]]:
    place = {op: k for k, ops in enumerate(regions) for op in ops}
    maker = {value: op.op_id for op in profile.operators for value in op.outputs}
    return {
        (place[maker[value]], place[op])
        for op in place
        for value in profile.operators[op].inputs
        if maker.get(value) in place and place[maker[value]] != place[op]
    }


@settings(max_examples=60, deadline=None)
@given(programs, styles, styles)
def test_regions_do_not_depend_on_one_another_in_a_circle(
    program: list[Step], first: list[bool], second: list[bool]
):
    baseline, candidate = written(program, first), written(program, second)
    regions = match(baseline, candidate).regions
    assert cycles(links(baseline, [region.baseline for region in regions])) == []
    assert cycles(links(candidate, [region.candidate for region in regions])) == []
