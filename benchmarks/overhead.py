"""What the timeline pass costs: timeline over clean, from interleaved blocks of one recording.

    python benchmarks/overhead.py [--system transformers] [--model llama] [--scale small] [--rounds 9]

Prints the median ratio of time and of energy per phase over the rounds of a recording and writes it, with
where it comes from, to benchmarks/results/overhead.json. Goal: at most 1.05 on the small Llama.
"""

import argparse
import json
from pathlib import Path
from statistics import median

from results import write_result

from magneton.profile.model import BlockReading, Pass, Profile
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
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    spec = parse_system(asked.system)
    if not isinstance(spec, SystemSpec):
        parser.error("a recorded profile cannot be run again")
    settings = Settings(model=asked.model, scale=asked.scale, rounds=asked.rounds)
    (request,) = requests_for([spec], settings)
    profile = record(request, plan_of(settings))
    figures = {phase: overheads(profile, phase) for phase in profile.origin.workload.phases}
    place = write_result("overhead", {"goal": GOAL, "overhead": figures}, profile.origin)
    print(json.dumps(figures, indent=2))
    print(f"written to {place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place}")


def overheads(profile: Profile, phase: Phase) -> dict[str, float | int]:
    """Median, lowest and highest ratio of a timeline block to the clean block of the same round, per step."""
    pairs = [
        (timeline, clean)
        for timeline in _blocks(profile, phase, "timeline")
        for clean in _blocks(profile, phase, "clean")
        if timeline.round == clean.round
    ]
    time = [_step_s(timeline) / _step_s(clean) for timeline, clean in pairs]
    energy = [_step_j(timeline) / _step_j(clean) for timeline, clean in pairs]
    return {
        "rounds": len(pairs),
        "time_median": round(median(time), 4),
        "time_lowest": round(min(time), 4),
        "time_highest": round(max(time), 4),
        "energy_median": round(median(energy), 4),
        "energy_lowest": round(min(energy), 4),
        "energy_highest": round(max(energy), 4),
    }


def _blocks(profile: Profile, phase: Phase, pass_: Pass) -> list[BlockReading]:
    return [block for block in profile.blocks if block.phase == phase and block.pass_ == pass_]


def _step_s(block: BlockReading) -> float:
    return block.duration_s / block.steps


def _step_j(block: BlockReading) -> float:
    if block.energy_j is None:
        raise SystemExit(f"the meter gave no reading for a block of {block.phase}: choose another meter")
    return block.energy_j / block.steps


if __name__ == "__main__":
    main()
