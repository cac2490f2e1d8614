"""What the timeline pass costs: timeline over clean, from interleaved blocks of one recording.

    python benchmarks/overhead.py [--system transformers] [--model llama] [--scale small] [--rounds 21]

Prints the median ratio of time and of energy over the rounds, per phase and for the whole generation, and
writes it, with where it comes from, to benchmarks/results/overhead.json. Nothing is replayed. Goal: at
most 1.05 on the small Llama.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from results import write_result

from magneton.profile.model import BlockReading, Pass, Profile
from magneton.record.plan import RecordPlan
from magneton.record.session import record
from magneton.settings import Settings, plan_of, requests_for
from magneton.system import SystemSpec, parse_system
from magneton.workload import Phase

GOAL = 1.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--system", default="transformers")
    parser.add_argument("--model", default="llama")
    parser.add_argument("--scale", default="small")
    parser.add_argument("--rounds", type=int, default=21)
    asked = parser.parse_args()
    spec = parse_system(asked.system)
    if not isinstance(spec, SystemSpec):
        parser.error("a recorded profile cannot be run again")
    settings = Settings(model=asked.model, scale=asked.scale, rounds=asked.rounds)
    (request,) = requests_for([spec], settings)
    plan = replace(plan_of(settings), timeline_s=RecordPlan().block_s, replay_rounds=0, in_place_rounds=0)
    profile = record(request, plan)
    phases = profile.origin.workload.phases
    figures = {phase: overhead(profile, (phase,)) for phase in phases}
    figures["generation"] = overhead(profile, phases)
    place = write_result("overhead", {"goal": GOAL, "overhead": figures}, profile.origin)
    print(json.dumps(figures, indent=2))
    print(f"written to {place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place}")


def overhead(profile: Profile, phases: Sequence[Phase]) -> dict[str, float | int]:
    """Median, lowest and highest ratio of timeline to clean, of blocks of one round, per step."""
    time = _ratios(profile, phases, lambda block: block.duration_s)
    energy = _ratios(profile, phases, _energy_j)
    return {
        "rounds": len(time),
        "time_median": round(median(time), 4),
        "time_lowest": round(min(time), 4),
        "time_highest": round(max(time), 4),
        "energy_median": round(median(energy), 4),
        "energy_lowest": round(min(energy), 4),
        "energy_highest": round(max(energy), 4),
    }


def _ratios(
    profile: Profile, phases: Sequence[Phase], figure: Callable[[BlockReading], float]
) -> list[float]:
    def total(pass_: Pass, round_: int) -> float:
        blocks = [b for b in profile.blocks if (b.pass_, b.round) == (pass_, round_) and b.phase in phases]
        return sum(figure(block) / block.steps for block in blocks)

    rounds = sorted({block.round for block in profile.blocks})
    return [total("timeline", round_) / total("clean", round_) for round_ in rounds]


def _energy_j(block: BlockReading) -> float:
    if block.energy_j is None:
        raise SystemExit(f"the meter gave no reading for a block of {block.phase}: choose another meter")
    return block.energy_j


if __name__ == "__main__":
    main()
