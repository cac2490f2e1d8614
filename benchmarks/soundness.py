"""The measure of a region: do both sides produce and consume the same paired values?

Judged from the profiles and the matching alone. An input that no pair knows is allowed only where it
comes from operators that are shared, or that the matching lists as set-up of one side, or existed before
and is a setting (mask, table, constant) or is read by this region only (a folded weight). What one side
reads directly the other may read through such a shared or set-up table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from magneton.match.anchor import Side
from magneton.match.classes import classify
from magneton.match.composites import concatenations
from magneton.match.marks import Marks
from magneton.match.memory import read_beneath
from magneton.match.model import Matching, Region
from magneton.match.wiring import wire
from magneton.profile.model import OpId, Profile, ValueId


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideOf:
    """One side as the judge sees it."""

    side: Side
    token: Mapping[int, int]  # value -> the pair that speaks of it
    lenders: frozenset[OpId]  # operators whose unpaired results others may read
    beneath: Mapping[int, frozenset[int]]  # position -> pairs read in memory that others wrote


def sides_of(baseline: Profile, candidate: Profile, matching: Matching, phase: str) -> tuple[SideOf, SideOf]:
    shared = [region for region in matching.regions if region.shared]
    lent_x = [op for region in shared for op in region.baseline]
    lent_y = [op for region in shared for op in region.candidate]
    lent_x += [left.op_id for left in matching.only_baseline if left.reason == "setup"]
    lent_y += [left.op_id for left in matching.only_candidate if left.reason == "setup"]
    return (
        _side(baseline, phase, [pair.baseline for pair in matching.pairs], lent_x),
        _side(candidate, phase, [pair.candidate for pair in matching.pairs], lent_y),
    )


def unsound(baseline: Profile, candidate: Profile, matching: Matching) -> list[tuple[Region, str]]:
    """Regions that fail, each with what differs. Reading all the parts of a value is reading the value."""
    found: list[tuple[Region, str]] = []
    for phase in dict.fromkeys(region.phase for region in matching.regions):
        side_x, side_y = sides_of(baseline, candidate, matching, phase)
        atoms = _atoms(matching, side_x, side_y)
        for region in matching.regions:
            if region.phase != phase:
                continue
            read_x, made_x, strange_x = _crossing(side_x, region.baseline)
            read_y, made_y, strange_y = _crossing(side_y, region.candidate)
            if strange_x or strange_y:
                found.append((region, f"reads unpaired values {sorted(strange_x)} | {sorted(strange_y)}"))
            elif _reads_apart((side_x, region.baseline, read_x), (side_y, region.candidate, read_y), atoms):
                found.append((region, f"consumes {sorted(read_x)} | {sorted(read_y)}"))
            elif not region.shared and _made_of(made_x, atoms) != _made_of(made_y, atoms):
                found.append((region, f"produces {sorted(made_x)} | {sorted(made_y)}"))
    return found


def _side(
    profile: Profile, phase: str, pairs: Sequence[Sequence[ValueId]], lenders: Sequence[OpId]
) -> SideOf:
    wiring = wire(profile, phase)
    classes = classify(wiring)
    by_spot: dict[tuple[int, int], int] = {}
    for alone in (True, False):
        for index, values in enumerate(pairs):
            for value in values:
                if (len(values) == 1) is alone and value in classes.of:
                    by_spot.setdefault((classes.of[value], classes.generation[value]), index)
    token = {
        value: by_spot[spot]
        for value, which in classes.of.items()
        if (spot := (which, classes.generation[value])) in by_spot
    }
    side = Side(wiring=wiring, classes=classes)
    return SideOf(side=side, token=token, lenders=frozenset(lenders), beneath=read_beneath(side, token))


def _crossing(judged: SideOf, ops: Sequence[OpId]) -> tuple[set[int], set[int], set[int]]:
    """Pairs that operators read from outside, pairs they make for others or for nobody, and strangers."""
    wiring, token = judged.side.wiring, judged.token
    position = {op.op_id: at for at, op in enumerate(wiring.operators)}
    inside = {position[op] for op in ops}
    read = {v for at in inside for v in wiring.inputs[at] if wiring.producer.get(v) not in inside}
    written = {v for at in inside for v in wiring.outputs[at] if v in token}
    roots = {v for generations in judged.side.classes.roots for spot in generations for v in spot}
    # A value that is merely laid out anew inside is not produced there.
    computed = {token[v] for v in written & roots}
    outward = {token[v] for v in written if not set(wiring.consumers.get(v, (-1,))) <= inside}
    own = {v for v in read if v not in wiring.producer and set(wiring.consumers[v]) <= inside}
    strange = {v for v in read - own if v not in token and v not in wiring.static and not _lent(judged, v)}
    beneath = {pair for at in inside for pair in judged.beneath.get(at, ())}
    return {token[v] for v in read if v in token} | beneath - computed, computed & outward, strange


def _reads_apart(
    baseline: tuple[SideOf, Sequence[OpId], set[int]],
    candidate: tuple[SideOf, Sequence[OpId], set[int]],
    atoms: Mapping[int, frozenset[int]],
) -> bool:
    """Whether one side reads a pair that the other reads neither directly nor through a table."""
    direct = _made_of(baseline[2], atoms), _made_of(candidate[2], atoms)
    through = [_made_of(_behind_tables(side, ops), atoms) for side, ops, _ in (baseline, candidate)]
    return not (direct[0] - direct[1] <= through[1] and direct[1] - direct[0] <= through[0])


def _behind_tables(judged: SideOf, ops: Sequence[OpId]) -> set[int]:
    """The pairs that lent values, which these operators read, are made of."""
    wiring = judged.side.wiring
    position = {op.op_id: at for at, op in enumerate(wiring.operators)}
    waiting = [v for op in ops for v in wiring.inputs[position[op]] if _lent(judged, v)]
    seen, found = set(waiting), set[int]()
    while waiting:
        for value in wiring.inputs[wiring.producer[waiting.pop()]]:
            if value in judged.token:
                found.add(judged.token[value])
            elif value not in seen and _lent(judged, value):
                seen.add(value)
                waiting.append(value)
    return found


def _lent(judged: SideOf, value: int) -> bool:
    at = judged.side.wiring.producer.get(value)
    return at is not None and judged.side.wiring.operators[at].op_id in judged.lenders


def _atoms(matching: Matching, side_x: SideOf, side_y: SideOf) -> Mapping[int, frozenset[int]]:
    judged = (side_x, side_y)
    marks = [Marks(anchor=side.token, roots=frozenset(), held=frozenset()) for side in judged]
    atoms = concatenations([side.side for side in judged], marks)
    for index, pair in enumerate(matching.pairs):
        for side, parts in ((side_x, pair.baseline), (side_y, pair.candidate)):
            tokens = [side.token.get(part, index) for part in parts]
            if pair.evidence == "composite" and index not in tokens:
                atoms[index] = _made_of(set(tokens), atoms)
    return atoms


def _made_of(pairs: set[int], atoms: Mapping[int, frozenset[int]]) -> frozenset[int]:
    return frozenset(atom for pair in pairs for atom in atoms.get(pair, (pair,)))
