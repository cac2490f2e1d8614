"""How much of what either side does lies in paired regions: of a whole model, and of one of its layers.

A layer is what a deeper model does more than a shallow one, by the number of layers between them: what
happens once per forward falls out. Working operators are those that compute: no views, no allocations of mere
memory, no synchronisations. Energy is that of all operators, as replay read it; as a difference of two
recordings, that of a layer is no more exact than they are, and a share of it may come out above one.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from granularity import places_of

from magneton.compare.ledger import Ledger
from magneton.compare.places import any_layer, source_line
from magneton.match.matching import align_phase, match
from magneton.match.model import Leftover, Matching, Region, SideName, Unpaired
from magneton.match.recognition import Verdict, View, recognise, view_from
from magneton.profile.model import Operator, OpId, Profile, ValueId
from magneton.workload import DECODE, Phase

SIDES: tuple[SideName, SideName] = ("baseline", "candidate")
_WORKING = ("compute", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Working operators and energy of one side in one forward, or one layer of it.

    ``operators_for_syncs`` are unpaired, and nothing but a synchronisation needs them.
    """

    operators: float
    operators_paired: float
    operators_for_syncs: float
    energy_j: float
    energy_paired_j: float
    regions: float

    @property
    def of_operators(self) -> float:
        return self.operators_paired / self.operators if self.operators else 1.0

    @property
    def of_operators_but_for_syncs(self) -> float:
        others = self.operators - self.operators_for_syncs
        return self.operators_paired / others if others else 1.0

    @property
    def of_energy(self) -> float:
        return self.energy_paired_j / self.energy_j if self.energy_j else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """Of the regions inside layers, the one with the largest share of a layer's energy on either side."""

    share_of_layer: tuple[float, float]
    operators: tuple[tuple[str, ...], tuple[str, ...]]  # those that work
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Leftover operators of one line. Verdicts are of their results: why these are no boundaries."""

    name: str
    reason: Unpaired
    verdicts: tuple[Verdict, ...]
    works: bool
    module: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """How often a kind is left over in one forward of the deep model, and in one layer."""

    kind: Kind
    times: float
    per_layer: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseShares:
    """One phase of one pair; everything is by side, baseline first."""

    whole: tuple[Share, Share]
    layer: tuple[Share, Share]
    largest: Largest | None
    left: tuple[tuple[Left, ...], tuple[Left, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matched:
    """Two profiles of one model with as many layers, and their matching."""

    layers: int
    ledgers: tuple[Ledger, Ledger]
    matching: Matching


def matched(layers: int, baseline: Profile, candidate: Profile) -> Matched:
    matching = match(baseline, candidate)
    return Matched(layers=layers, ledgers=(Ledger(baseline), Ledger(candidate)), matching=matching)


def shares(shallow: Matched, deep: Matched) -> Mapping[Phase, PhaseShares]:
    phases = deep.ledgers[0].profile.origin.workload.phases
    return {phase: _of_phase(phase, shallow, deep) for phase in phases}


def _of_phase(phase: Phase, shallow: Matched, deep: Matched) -> PhaseShares:
    layers = deep.layers - shallow.layers
    whole = _share(deep, 0, phase), _share(deep, 1, phase)
    less = _share(shallow, 0, phase), _share(shallow, 1, phase)
    layer = _difference(whole[0], less[0], layers), _difference(whole[1], less[1], layers)
    kinds = _kinds(deep, phase), _kinds(shallow, phase)
    return PhaseShares(
        whole=whole,
        layer=layer,
        largest=_largest(deep, phase, layer),
        left=(_left(kinds[0][0], kinds[1][0], layers), _left(kinds[0][1], kinds[1][1], layers)),
    )


def _share(pair: Matched, at: int, phase: Phase) -> Share:
    profile, forwards = pair.ledgers[at].profile, _forwards(pair, phase)
    regions = [region for region in pair.matching.regions if region.phase == phase]
    held = {op for region in regions for op in _side(region, at)}
    operators = [op for op in profile.operators if op.phase == phase]
    working = {op.op_id for op in operators if _works(op)}
    syncs = {left.op_id for left in _only(pair, at) if left.reason == "sync"}
    return Share(
        operators=len(working) / forwards,
        operators_paired=len(working & held) / forwards,
        operators_for_syncs=len(working & syncs) / forwards,
        energy_j=_energy_j(pair, at, [op.op_id for op in operators]) / forwards,
        energy_paired_j=_energy_j(pair, at, sorted(held)) / forwards,
        regions=len(regions) / forwards,
    )


def _difference(deep: Share, shallow: Share, layers: int) -> Share:
    return Share(
        operators=(deep.operators - shallow.operators) / layers,
        operators_paired=(deep.operators_paired - shallow.operators_paired) / layers,
        operators_for_syncs=(deep.operators_for_syncs - shallow.operators_for_syncs) / layers,
        energy_j=(deep.energy_j - shallow.energy_j) / layers,
        energy_paired_j=(deep.energy_paired_j - shallow.energy_paired_j) / layers,
        regions=(deep.regions - shallow.regions) / layers,
    )


def _largest(deep: Matched, phase: Phase, layer: tuple[Share, Share]) -> Largest | None:
    """A region may reach over several layers; then it counts in full."""
    placed = [places_of(ledger.profile.operators) for ledger in deep.ledgers]
    found: list[Largest] = []
    for region in deep.matching.regions:
        sides = region.baseline, region.candidate
        inside = any(op in places for places, ops in zip(placed, sides, strict=True) for op in ops)
        if region.phase == phase and inside:
            energies_j = _energy_j(deep, 0, sides[0]), _energy_j(deep, 1, sides[1])
            found.append(
                Largest(
                    share_of_layer=(energies_j[0] / layer[0].energy_j, energies_j[1] / layer[1].energy_j),
                    operators=(_names(deep, 0, sides[0]), _names(deep, 1, sides[1])),
                    where=deep.ledgers[0].profile.operators[region.baseline[-1]].module_path,
                )
            )
    return max(found, key=lambda it: max(it.share_of_layer), default=None)


def _kinds(pair: Matched, phase: Phase) -> tuple[Mapping[Kind, float], Mapping[Kind, float]]:
    """How often each kind is left over in a forward, of either side."""
    alignment = align_phase(pair.ledgers[0].profile, pair.ledgers[1].profile, phase)
    counts: list[Mapping[Kind, float]] = []
    for at, side in enumerate(SIDES):
        profile, view = pair.ledgers[at].profile, view_from(alignment, side)
        counted = Counter(
            _kind(profile, view, profile.operators[left.op_id], left.reason)
            for left in _only(pair, at)
            if profile.operators[left.op_id].phase == phase
            and profile.operators[left.op_id].effect not in ("view", "alloc")
        )
        counts.append({kind: count / _forwards(pair, phase) for kind, count in counted.items()})
    return counts[0], counts[1]


def _kind(profile: Profile, view: View, operator: Operator, reason: Unpaired) -> Kind:
    source = source_line(profile.stacks[operator.stack_id])
    verdicts: set[Verdict] = {recognise(view, ValueId(value)).verdict for value in operator.outputs}
    return Kind(
        name=operator.name,
        reason=reason,
        verdicts=tuple(sorted(verdicts, key=str)),
        works=_works(operator),
        module=any_layer(operator.module_path),
        source="" if source is None else f"{_short(source.file)}:{source.line} {source.function}",
    )


def _short(path: str) -> str:
    """Below the packages, where it lies there: a path of the machine says nothing."""
    _, packages, below = path.rpartition("site-packages/")
    return below if packages else "/".join(path.split("/")[-2:])


def _left(deep: Mapping[Kind, float], shallow: Mapping[Kind, float], layers: int) -> tuple[Left, ...]:
    """Those of every layer first, the commonest first."""
    found = [
        Left(kind=kind, times=times, per_layer=(times - shallow.get(kind, 0.0)) / layers)
        for kind, times in deep.items()
    ]
    return tuple(sorted(found, key=lambda it: (-it.per_layer, -it.times, it.kind.source, it.kind.name)))


def _names(pair: Matched, at: int, ops: Collection[OpId]) -> tuple[str, ...]:
    return tuple(op.name for op in _operators(pair, at, ops) if _works(op))


def _operators(pair: Matched, at: int, ops: Collection[OpId]) -> Iterator[Operator]:
    return (pair.ledgers[at].profile.operators[op] for op in ops)


def _energy_j(pair: Matched, at: int, ops: Sequence[OpId]) -> float:
    cost = pair.ledgers[at].attributed(ops)
    return 0.0 if cost is None else cost.value


def _works(operator: Operator) -> bool:
    return operator.effect in _WORKING


def _side(region: Region, at: int) -> Sequence[OpId]:
    return region.baseline if at == 0 else region.candidate


def _only(pair: Matched, at: int) -> Sequence[Leftover]:
    return pair.matching.only_baseline if at == 0 else pair.matching.only_candidate


def _forwards(pair: Matched, phase: Phase) -> int:
    return pair.ledgers[0].profile.origin.workload.decode_steps if phase == DECODE else 1
