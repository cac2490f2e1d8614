"""Match two profiles: which operators do the same work, and on what evidence.

In: two profiles of the same workload. Out: regions of operators between equal values, with every
operator of either side in exactly one region or one leftover. Each phase is matched on its own; names
of operators are never used. Decisions and their reasons: docs/decisions/0004-regions.md.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from magneton.match.groups import group_regions
from magneton.match.model import Leftover, Matching, Region, ValuePair
from magneton.match.phases import Alignment, align
from magneton.match.regions import lay_regions
from magneton.match.wiring import wire
from magneton.profile.model import OpId, Profile
from magneton.workload import Phase


def match(baseline: Profile, candidate: Profile) -> Matching:
    """Regions of ``baseline`` and ``candidate`` that turn the same values into the same values."""
    pairs: dict[ValuePair, int] = {}
    regions: list[Region] = []
    only_baseline: list[Leftover] = []
    only_candidate: list[Leftover] = []
    for phase in dict.fromkeys(op.phase for op in (*baseline.operators, *candidate.operators)):
        found = lay_regions(phase, align_phase(baseline, candidate, phase))
        number = [pairs.setdefault(pair, len(pairs)) for pair in found.pairs]
        regions += [_renumbered(region, number) for region in found.regions]
        only_baseline += found.only_baseline
        only_candidate += found.only_candidate
    _check_conserved(baseline, (r.baseline for r in regions), only_baseline)
    _check_conserved(candidate, (r.candidate for r in regions), only_candidate)
    return Matching(
        pairs=tuple(pairs),
        regions=tuple(regions),
        groups=group_regions(baseline, candidate, regions),
        only_baseline=tuple(only_baseline),
        only_candidate=tuple(only_candidate),
    )


def align_phase(baseline: Profile, candidate: Profile, phase: Phase) -> Alignment:
    """Both sides of ``phase`` laid out between common values."""
    return align(wire(baseline, phase), wire(candidate, phase))


def _renumbered(region: Region, number: Sequence[int]) -> Region:
    return replace(
        region,
        produces=tuple(number[k] for k in region.produces),
        consumes=tuple(number[k] for k in region.consumes),
    )


def _check_conserved(profile: Profile, held: Iterable[Sequence[OpId]], leftovers: Sequence[Leftover]) -> None:
    """A loss or a double count here would be a bug that falsifies every sum of energies."""
    places = Counter(op for ops in held for op in ops)
    places.update(leftover.op_id for leftover in leftovers)
    if len(places) != len(profile.operators) or any(count != 1 for count in places.values()):
        raise ValueError("matching lost an operator or holds one twice")
