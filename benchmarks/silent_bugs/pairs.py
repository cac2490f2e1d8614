"""What the prover says of the corpus of silent bugs, and of bugs planted in its right pairs.

    PYTHONPATH=tests/support python benchmarks/silent_bugs/pairs.py [--mutants 20] [--seed 0]

Every case of ``tests/scalify/cases``: is the verdict the one its file expects, do values differ where they
should, does the suspect stand on a line that the file marks. Then, for every pair that is proved, mutants of
the candidate (``--mutants 0``: all of them): NumPy decides whether a mutant is wrong, and one that is wrong
and yet proved is unsound. Of those that are caught: how often the suspect is a node that was changed or,
where one was left out, its neighbour. Times are CPU-seconds of one ``verify`` each. Writes
benchmarks/results/silent_bug_pairs.json; exits with 1 if anything was unsound.
"""

import argparse
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from random import Random
from statistics import median
from time import process_time

from scalify_cases import Pair, case_names, gap_of, load_pair, suspect_lines
from scalify_mutants import Mutant, mutants

from scalify.prove.verify import verify
from scalify.verdict import Proved, Unknown, Verdict

RESULT = Path(__file__).parents[1] / "results" / "silent_bug_pairs.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--mutants", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    start_s = process_time()
    cases = {name: _case(name) for name in case_names()}
    planted: Counter[str] = Counter()
    for name, case in cases.items():
        if case["verdict"] == "Proved":
            planted += _planted(name, asked.mutants, Random(f"{asked.seed}.{name}"))
    summary = {"cases": _summary(cases), "planted": dict(sorted(planted.items()))}
    _write({**summary, "by_case": cases}, asked.seed, asked.mutants, process_time() - start_s)
    print(json.dumps(summary, indent=2))
    sys.exit(1 if summary["cases"]["unsound"] + planted["unsound"] else 0)


def _case(name: str) -> Mapping[str, object]:
    pair = load_pair(name)
    start_s = process_time()
    verdict = verify(pair.baseline, pair.candidate, pair.relations())
    cpu_s = process_time() - start_s
    shown = {output.candidate for output in verdict.outputs if output.layout is not None}
    wrong = pair.verdict == "unknown"
    return {
        "expected": pair.verdict,
        "verdict": type(verdict).__name__,
        "gap": gap_of(name),
        "differing": pair.differing(),
        "unsound": wrong and (isinstance(verdict, Proved) or not shown <= set(pair.agreeing)),
        "suspect_found": _line_of(verdict) in suspect_lines(name) if wrong else None,
        "cpu_s": round(cpu_s, 3),
    }


def _line_of(verdict: Verdict) -> int | None:
    if not isinstance(verdict, Unknown) or verdict.suspect is None or verdict.suspect.candidate.site is None:
        return None
    return verdict.suspect.candidate.site.line


def _summary(cases: Mapping[str, Mapping[str, object]]) -> dict[str, float]:
    right = [case for case in cases.values() if case["expected"] == "proved"]
    wrong = [case for case in cases.values() if case["expected"] == "unknown"]
    return {
        "right_pairs": len(right),
        "right_pairs_proved": sum(case["verdict"] == "Proved" for case in right),
        "wrong_pairs": len(wrong),
        "unsound": sum(bool(case["unsound"]) for case in wrong),
        "suspects_found": sum(bool(case["suspect_found"]) for case in wrong),
        "median_cpu_s": round(median(float(str(case["cpu_s"])) for case in cases.values()), 3),
    }


def _planted(name: str, count: int, rng: Random) -> Counter[str]:
    """Outcomes of some mutants of a case's candidate, or of all where ``count`` is 0."""
    pair = replace(load_pair(name), declared=False)
    made = list(mutants(pair.candidate))
    rng.shuffle(made)
    outcomes: Counter[str] = Counter()
    for mutant in made[: count or None]:
        for outcome in _outcomes(pair, mutant):
            outcomes[outcome] += 1
            if outcome == "unsound":
                print(f"UNSOUND {name}: {mutant.what}", file=sys.stderr)
    return outcomes


def _outcomes(pair: Pair, mutant: Mutant) -> Sequence[str]:
    changed = replace(pair, candidate=mutant.graph)
    if not changed.is_finite():
        return ("made", "not finite or out of range")
    verdict = verify(changed.baseline, changed.candidate, changed.relations())
    right = not changed.differing()
    if isinstance(verdict, Proved):
        return ("made", "still right, proved" if right else "unsound")
    if right:
        return ("made", "still right, unknown")
    if verdict.suspect is None:
        return ("made", "caught", "no suspect")
    found = verdict.suspect.candidate.node in mutant.places
    return ("made", "caught", "suspect found" if found else "suspect elsewhere")


def _write(figures: Mapping[str, object], seed: int, count: int, cpu_s: float) -> None:
    made_by = {
        "script": "benchmarks/silent_bugs/pairs.py",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "egglog")},
        },
        "seed": seed,
        "mutants_per_case": count or "all",
        "cpu_s": round(cpu_s, 1),
    }
    RESULT.write_text(json.dumps({"made_by": made_by, **figures}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
