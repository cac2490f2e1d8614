"""Equal region pairs of repeated layers and steps, as one group each.

Regions are equal when both sides do the same operators, in the same order, wired alike. Sizes that grow
from step to step (a cache) are no difference: only ranks and kinds of numbers count, except for
parameters, whose shapes are the model's own. Names serve to group and to show, never to match.
"""

import re
from collections.abc import Hashable, Sequence

from magneton.match.model import Region, RegionGroup
from magneton.profile.model import Operator, OpId, Profile

_NUMBER = re.compile(r"\d+")


def group_regions(
    baseline: Profile, candidate: Profile, regions: Sequence[Region]
) -> tuple[RegionGroup, ...]:
    by_shape: dict[Hashable, list[int]] = {}
    for index, region in enumerate(regions):
        by_shape.setdefault(_shape(baseline, candidate, region), []).append(index)
    return tuple(RegionGroup(regions=tuple(members)) for members in by_shape.values())


def _shape(baseline: Profile, candidate: Profile, region: Region) -> Hashable:
    return (
        region.phase,
        region.shared,
        len(region.produces),
        len(region.consumes),
        _operators(baseline, region.baseline),
        _operators(candidate, region.candidate),
    )


def _operators(profile: Profile, ops: Sequence[OpId]) -> Hashable:
    place = {int(value): k for k, op in enumerate(ops) for value in profile.operators[op].outputs}
    return tuple(_operator(profile, profile.operators[op], place) for op in ops)


def _operator(profile: Profile, op: Operator, place: dict[int, int]) -> Hashable:
    def read(value: int) -> Hashable:
        seen = profile.values[value]
        shape = seen.shape if seen.role == "parameter" else len(seen.shape)
        return place.get(value, -1), shape, seen.dtype

    written = tuple((len(profile.values[v].shape), profile.values[v].dtype) for v in op.outputs)
    return op.name, _NUMBER.sub("*", op.module_path), tuple(map(read, op.inputs)), written
