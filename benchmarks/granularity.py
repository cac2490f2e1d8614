"""How small regions are: region pairs in each decoder block, and the dearest as a share of a forward.

    python benchmarks/granularity.py [--model llama] [--scale small] [--threads 1]

Records eager against sdpa attention, and transformers against torch. Per phase: the fewest region pairs that
lie inside one block (of every forward), regions that reach over several blocks, and the dearest region of
any block as a share of the energy of one forward: the whole step of prefill, one token of decode. The energy
is that of the clean pass, on whichever side the share is larger. A region is opaque where a side does it in
one operator that is no view: it cannot be divided. Goals: at least 8 region pairs in each block, and no
region above 10 % that is not opaque. Writes benchmarks/results/granularity.json.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from results import write_result

from magneton.compare.ledger import Ledger
from magneton.match import match
from magneton.match.model import Matching, Region
from magneton.profile.model import Operator, OpId, Profile
from magneton.record.session import record_pair
from magneton.settings import Settings, plan_of, requests_for
from magneton.system import SystemSpec, parse_system
from magneton.workload import Phase

COMPARISONS = {
    "eager against sdpa": (
        "transformers:attn_implementation=eager",
        "transformers:attn_implementation=sdpa",
    ),
    "transformers against torch": ("transformers", "torch"),
}
FEWEST, DEAREST = 8, 0.10
ROUNDS, REPLAYS = 3, 7  # shares of a tenth need no narrow intervals
_BLOCK = re.compile(r"\b(?:layers|h|blocks)\.(\d+)\b(?:\.(\w+))?")

Place = tuple[int, int]  # which forward of the step, which block of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The share of a region in the energy of one forward, and what each side does in it."""

    share: float
    baseline: tuple[str, ...]  # operators that are no views
    candidate: tuple[str, ...]
    where: str

    @property
    def opaque(self) -> bool:
        return 1 in (len(self.baseline), len(self.candidate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Granularity:
    """Of one phase. ``fewest`` counts regions inside one block of one forward."""

    blocks: int
    fewest: int
    across: int  # regions that reach over several blocks: shared tables and masks, and their views
    dearest: Shown
    dearest_divisible: Shown  # of those that are not opaque

    @property
    def good(self) -> bool:
        return self.fewest >= FEWEST and self.dearest_divisible.share <= DEAREST


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--model", default="llama")
    parser.add_argument("--scale", default="small")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    settings = Settings(model=asked.model, scale=asked.scale, threads=asked.threads, rounds=ROUNDS)
    recordings = {name: recorded(systems, settings) for name, systems in COMPARISONS.items()}
    figures = {name: granularity(*sides, match(*sides)) for name, sides in recordings.items()}
    for name, phases in figures.items():
        show(name, phases)
    goals = {"fewest_regions_of_a_block": FEWEST, "dearest_divisible_share": DEAREST}
    origin = next(iter(recordings.values()))[0].origin
    place = write_result("granularity", {"goals": goals, "comparisons": told(figures)}, origin)
    print(f"written to {place.name}")


def recorded(systems: Sequence[str], settings: Settings) -> tuple[Profile, Profile]:
    specs = [spec for spec in map(parse_system, systems) if isinstance(spec, SystemSpec)]
    baseline, candidate = requests_for(specs, settings)
    plan = replace(plan_of(settings), block_s=0.1, timeline_s=0.02, warm_up_s=0.1, in_place_rounds=REPLAYS)
    return record_pair(baseline, candidate, plan)


def granularity(baseline: Profile, candidate: Profile, matching: Matching) -> dict[Phase, Granularity]:
    ledgers = Ledger(baseline), Ledger(candidate)
    places = places_of(baseline.operators), places_of(candidate.operators)
    return {phase: _of_phase(phase, ledgers, places, matching) for phase in baseline.origin.workload.phases}


def places_of(operators: Sequence[Operator]) -> dict[OpId, Place]:
    """The operators inside blocks. A forward ends where the number of the block falls.

    A module that all blocks share (rotary embedding) is named after the first of them, and belongs to the one
    that runs it.
    """
    places: dict[OpId, Place] = {}
    inside = [(it, found) for it in operators if (found := _BLOCK.search(it.module_path))]
    phase, forward, last = "", 0, -1
    for (current, number), run in groupby(inside, key=lambda it: (it[0].phase, int(it[1][1]))):
        members = tuple(run)
        block = number
        if current != phase:
            phase, forward = current, 0
        elif number < last and len({found[2] for _, found in members}) == 1:
            block = last
        elif number < last:
            forward += 1
        last = block
        places.update((operator.op_id, (forward, block)) for operator, _ in members)
    return places


def _of_phase(
    phase: Phase,
    ledgers: tuple[Ledger, Ledger],
    places: tuple[Mapping[OpId, Place], Mapping[OpId, Place]],
    matching: Matching,
) -> Granularity:
    inside: Counter[Place] = Counter()
    for ledger, placed in zip(ledgers, places, strict=True):
        here = (place for op, place in placed.items() if ledger.profile.operators[op].phase == phase)
        inside.update(dict.fromkeys(here, 0))
    forwards = 1 + max(forward for forward, _ in inside)
    across, shown = 0, list[Shown]()
    for region in matching.regions:
        touched = set(_touched(region, places))
        if region.phase != phase or not touched:
            continue
        if len(touched) == 1:
            inside.update(touched)
        across += len(touched) > 1
        # Tables that all steps are served by at once are a part of each.
        spanned = len({forward for forward, _ in touched}) if region.shared else 1
        shown.append(_shown(region, ledgers, forwards / spanned))
    nothing = Shown(share=0.0, baseline=(), candidate=(), where="")
    return Granularity(
        blocks=len(inside),
        fewest=min(inside.values()),
        across=across,
        dearest=max(shown, key=lambda it: it.share, default=nothing),
        dearest_divisible=max(
            (it for it in shown if not it.opaque), key=lambda it: it.share, default=nothing
        ),
    )


def _touched(region: Region, places: tuple[Mapping[OpId, Place], Mapping[OpId, Place]]) -> Iterator[Place]:
    for placed, ops in zip(places, (region.baseline, region.candidate), strict=True):
        yield from (placed[op] for op in ops if op in placed)


def _shown(region: Region, ledgers: tuple[Ledger, Ledger], forwards: float) -> Shown:
    names: list[tuple[str, ...]] = []
    shares: list[float] = []
    for ledger, ops in zip(ledgers, (region.baseline, region.candidate), strict=True):
        operators = [ledger.profile.operators[op] for op in ops]
        names.append(tuple(it.name for it in operators if it.effect not in ("view", "alloc")))
        total, cost = ledger.total(region.phase), ledger.attributed(ops)
        if total is not None and cost is not None:
            shares.append(cost.value / total.value * forwards)
    last = ledgers[0].profile.operators[region.baseline[-1]]
    return Shown(
        share=max(shares, default=0.0), baseline=names[0], candidate=names[1], where=last.module_path
    )


def show(name: str, phases: Mapping[Phase, Granularity]) -> None:
    print(name)
    for phase, it in phases.items():
        verdict = "met" if it.good else "MISSED"
        print(
            f"  {phase:<8} {it.blocks} blocks, at least {it.fewest} region pairs in each (goal {FEWEST}), "
            f"{it.across} regions across blocks: {verdict}"
        )
        for what, shown in (("dearest", it.dearest), ("dearest divisible", it.dearest_divisible)):
            print(f"    {what:<18} {shown.share:6.1%} of a forward, {shown.where}")
            print(f"      {_counted(shown.baseline)}  |  {_counted(shown.candidate)}")


def _counted(names: Sequence[str]) -> str:
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in Counter(names).items())


def told(figures: Mapping[str, Mapping[Phase, Granularity]]) -> dict[str, object]:
    """As JSON."""

    def region(shown: Shown) -> dict[str, object]:
        return {
            "share": round(shown.share, 4),
            "opaque": shown.opaque,
            "module": shown.where,
            "baseline": shown.baseline,
            "candidate": shown.candidate,
        }

    return {
        name: {
            phase: {
                "blocks": it.blocks,
                "fewest_regions": it.fewest,
                "regions_across_blocks": it.across,
                "good": it.good,
                "dearest": region(it.dearest),
                "dearest_divisible": region(it.dearest_divisible),
            }
            for phase, it in phases.items()
        }
        for name, phases in figures.items()
    }


if __name__ == "__main__":
    main()
