"""What a matching comes to: which operators are paired and on what evidence, and what is left over."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from magneton.compare.comparability import work_notes
from magneton.compare.model import Work
from magneton.compare.places import any_layer, describe_work
from magneton.match.grounds import Ground, ground_of
from magneton.match.model import Evidence, Leftover, Matching, Region, RegionGroup, SideName, Unpaired
from magneton.profile.model import OpId, Profile
from magneton.profile.origin import Origin
from magneton.report.mentioned import MentionedOperator, mention_operator
from magneton.workload import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundSummary:
    """Regions whose pairing rests on the same, and how many operators of either side they hold."""

    ground: Ground
    regions: int
    baseline: int
    candidate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseMatching:
    """``evidence`` counts the value pairs that regions of the phase produce or consume."""

    phase: Phase
    baseline: int  # operators
    candidate: int
    baseline_paired: int  # operators in regions
    candidate_paired: int
    regions: int
    groups: int
    grounds: tuple[GroundSummary, ...]
    evidence: Mapping[Evidence, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """Equal regions, by index in ``Matching.regions``; operators and counts of pairs are the first's."""

    phase: Phase
    regions: tuple[int, ...]
    grounds: tuple[Ground, ...]
    shared: bool
    baseline: Work
    candidate: Work
    baseline_operators: tuple[OpId, ...]
    candidate_operators: tuple[OpId, ...]
    produces: int
    consumes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoverKind:
    """Executions of one operator in equal modules of repeated layers; ``first`` is the first of them."""

    executions: int
    first: MentionedOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoverSummary:
    """What one side does alone for one reason; the most frequent kinds first."""

    phase: Phase
    side: SideName
    reason: Unpaired
    operators: int
    kinds: tuple[LeftoverKind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingSummary:
    """``groups`` are in the order of execution, ``leftovers`` by phase and side, the most first."""

    baseline: Origin
    candidate: Origin
    notes: tuple[str, ...]
    phases: tuple[PhaseMatching, ...]
    groups: tuple[GroupSummary, ...]
    leftovers: tuple[LeftoverSummary, ...]
    matching: Matching

    @property
    def is_empty(self) -> bool:
        """Whether no region produces a value that was recognised on the other side."""
        found = {ground.ground for phase in self.phases for ground in phase.grounds}
        return found <= {"output", "consumes", "serves"}


def summarise_matching(
    baseline: Profile, candidate: Profile, matching: Matching, phase: Phase | None = None
) -> MatchingSummary:
    """The matching as ``magneton match`` tells it; of one phase, or of all."""
    phases = dict.fromkeys(op.phase for op in (*baseline.operators, *candidate.operators))
    chosen = [each for each in phases if phase in (None, each)]
    groups = (_group(baseline, candidate, matching, group) for group in matching.groups)
    leftovers = [
        *_leftovers("baseline", baseline, matching.only_baseline),
        *_leftovers("candidate", candidate, matching.only_candidate),
    ]
    return MatchingSummary(
        baseline=baseline.origin,
        candidate=candidate.origin,
        notes=tuple(work_notes(baseline.origin, candidate.origin)),
        phases=tuple(_phase(baseline, candidate, matching, each) for each in chosen),
        groups=tuple(group for group in groups if group.phase in chosen),
        leftovers=tuple(found for each in chosen for found in leftovers if found.phase == each),
        matching=matching,
    )


def _phase(baseline: Profile, candidate: Profile, matching: Matching, phase: Phase) -> PhaseMatching:
    regions = [region for region in matching.regions if region.phase == phase]
    by_ground: dict[Ground, list[Region]] = defaultdict(list)
    for region in regions:
        by_ground[ground_of(region, matching.pairs)].append(region)
    grounds = [_ground(ground, found) for ground, found in by_ground.items()]
    bounds = {k for region in regions for k in (*region.produces, *region.consumes)}
    evidence: dict[Evidence, int] = {}
    for k in sorted(bounds):
        found = matching.pairs[k].evidence
        evidence[found] = evidence.get(found, 0) + 1
    return PhaseMatching(
        phase=phase,
        baseline=sum(op.phase == phase for op in baseline.operators),
        candidate=sum(op.phase == phase for op in candidate.operators),
        baseline_paired=sum(found.baseline for found in grounds),
        candidate_paired=sum(found.candidate for found in grounds),
        regions=len(regions),
        groups=sum(matching.regions[group.regions[0]].phase == phase for group in matching.groups),
        grounds=tuple(sorted(grounds, key=lambda found: -found.regions)),
        evidence=evidence,
    )


def _ground(ground: Ground, regions: Sequence[Region]) -> GroundSummary:
    return GroundSummary(
        ground=ground,
        regions=len(regions),
        baseline=sum(len(region.baseline) for region in regions),
        candidate=sum(len(region.candidate) for region in regions),
    )


def _group(baseline: Profile, candidate: Profile, matching: Matching, group: RegionGroup) -> GroupSummary:
    regions = [matching.regions[k] for k in group.regions]
    first = regions[0]
    return GroupSummary(
        phase=first.phase,
        regions=group.regions,
        grounds=tuple(dict.fromkeys(ground_of(region, matching.pairs) for region in regions)),
        shared=first.shared,
        baseline=_work(baseline, [region.baseline for region in regions]),
        candidate=_work(candidate, [region.candidate for region in regions]),
        baseline_operators=first.baseline,
        candidate_operators=first.candidate,
        produces=len(first.produces),
        consumes=len(first.consumes),
    )


def _work(profile: Profile, repetitions: Sequence[Sequence[OpId]]) -> Work:
    """What counts most comes first: arithmetic, then bytes."""
    operators = profile.operators
    return describe_work(profile, repetitions, lambda op: (operators[op].flops, operators[op].bytes_moved))


def _leftovers(side: SideName, profile: Profile, only: Sequence[Leftover]) -> Iterator[LeftoverSummary]:
    by_reason: dict[tuple[Phase, Unpaired], list[OpId]] = defaultdict(list)
    for leftover in only:
        by_reason[profile.operators[leftover.op_id].phase, leftover.reason].append(leftover.op_id)
    for (phase, reason), operators in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        kinds: dict[tuple[str, str], list[OpId]] = defaultdict(list)
        for op_id in operators:
            operator = profile.operators[op_id]
            kinds[operator.name, any_layer(operator.module_path)].append(op_id)
        yield LeftoverSummary(
            phase=phase,
            side=side,
            reason=reason,
            operators=len(operators),
            kinds=tuple(
                LeftoverKind(executions=len(alike), first=mention_operator(side, profile, alike[0]))
                for alike in sorted(kinds.values(), key=len, reverse=True)
            ),
        )
