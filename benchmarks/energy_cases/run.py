"""Does a comparison find what was planted, name its cause, and leave alone what costs the same?

    PYTHONPATH=benchmarks python benchmarks/energy_cases/run.py [--only NAME ...] [--rounds N] [--quick]
                                                                [--profiles FOLDER]

Every case of ``catalogue`` is measured as ``magneton compare FILE:wasteful FILE:lean`` does it, and its
report is held against what the catalogue expects. Only certain findings count (waste or trade-off), and those
that begin in the case's own file; any other is a false one. Prints a row a case as it goes, then the score;
writes benchmarks/results/energy_cases.json, where cases that were not asked for stay as they were.
``--quick`` measures once, which shows whether everything runs and decides nothing, and writes nothing. With
``--profiles`` recordings are kept in FOLDER, and those that lie there are not made again. Exits with 1 after
a false finding.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from json import loads
from pathlib import Path
from time import monotonic
from typing import Any

from energy_cases.case import Case
from energy_cases.catalogue import ABSENT, CASES
from energy_cases.score import COLUMNS, Score, score, summary
from results import FOLDER, write_result

from magneton.compare.model import Comparison, Criteria
from magneton.compare.profiles import compare_profiles
from magneton.errors import MagnetonError
from magneton.record.progress import NoProgress
from magneton.settings import Settings
from magneton.sides import obtain_pair

ROUNDS = 5
RESULT = "energy_cases"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profiles", type=Path, help="keep recordings in this folder")
    asked = parser.parse_args()
    scores: dict[str, Score] = {}
    comparison = None
    print(f"{'case':30s}" + "".join(f"{name:>12s}" for name in COLUMNS), flush=True)
    for case in CASES:
        if asked.only is not None and case.name not in asked.only:
            continue
        before_s = monotonic()
        comparison = compared(case, 1 if asked.quick else asked.rounds, asked.profiles)
        found = scores[case.name] = score(case, comparison)
        print(f"{case.name:30s}{found.row()}  {found.why} [{monotonic() - before_s:.0f} s]", flush=True)
    if comparison is not None and not asked.quick:
        _write(scores, comparison)
    sys.exit(1 if any(found.false_findings for found in scores.values()) else 0)


def compared(case: Case, rounds: int, profiles: Path | None) -> Comparison:
    settings = Settings(meter="modelled", device="cpu", threads=1, rounds=rounds)
    place = None if profiles is None else profiles / case.name
    sides = case.sides()
    if place is not None and (place / "candidate.mgn").exists():
        sides = str(place / "baseline.mgn"), str(place / "candidate.mgn")
        place = None
    try:
        return compare_profiles(*obtain_pair(*sides, settings, NoProgress(), save=place), Criteria())
    except MagnetonError as error:
        sys.exit(f"{case.name}: {error}\nhint: {error.hint}")


def _write(scores: Mapping[str, Score], comparison: Comparison) -> None:
    told: dict[str, Mapping[str, Any]] = {
        **_before(),
        **{name: asdict(found) for name, found in scores.items()},
    }
    ordered = {case.name: told[case.name] for case in CASES if case.name in told}
    totals = summary(CASES, [Score(**found) for found in ordered.values()])
    print(*(f"{name}: {value}" for name, value in totals.items()), sep="\n")
    figures = {"summary": totals, "cases": ordered, "absent": [asdict(absent) for absent in ABSENT]}
    origin = replace(comparison.baseline.origin, options={}, model="a decoder of energy_cases/planting.py")
    write_result(RESULT, figures, origin)


def _before() -> Mapping[str, Mapping[str, Any]]:
    place = FOLDER / f"{RESULT}.json"
    return loads(place.read_text(encoding="utf-8"))["cases"] if place.exists() else {}


if __name__ == "__main__":
    main()
