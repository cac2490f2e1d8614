"""Mistakes planted in parallel language models: are they refuted, and is the mistake named?

    PYTHONPATH=tests/support:. python -W ignore benchmarks/mutants.py

The programs are captured: decoders on one device and on ranks, and training steps with their gradients
(benchmarks/mutation/programs.py). Of each class of mistakes (tests/support/model_mutants.py) some are drawn
in each program, with a seed that was fixed beforehand, and made as one edit of its graph; each is verified
against the program on one device. Which nodes name the mistake: tests/support/graph_edits.py.

A mutant that is not refuted is run on many more draws. If all agree, it may be equivalent; that counts only
with an argument in benchmarks/mutation/equivalent.toml. Without one, a proved mutant is an error, and so is
a proved one that differs on any draw: the exit status is 1.

Times are seconds of processor time of one verification. Writes benchmarks/results/mutants.json and the table
in docs/mutants.md after each program; a run of some programs (--model) leaves the others as they were.
"""

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version

from model_mutants import SEED, chosen
from mutation.judging import Judged, arguments, judged
from mutation.programs import PROGRAMS, Program
from mutation.results import Results, Tried, errors, read, table, write

from scalify import __version__
from scalify.verdict import Proved

MOST = 2
"""Mutants of each class in each program."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="", help="a part of the names of programs")
    parser.add_argument("--only", default="", help="a part of the names of mutants; then nothing is written")
    parser.add_argument("--fresh", action="store_true", help="forget what other runs have written")
    asked = parser.parse_args()
    argued = {name: why for name, why in arguments().items() if asked.only in name}
    results: Results = {} if asked.fresh or asked.only else read()
    for program in PROGRAMS:
        if asked.model in program.name:
            results = _in_order({**results, program.name: tried(program, asked.only)})
            if not asked.only:
                write(results, _made_by(), argued)
    print(table(results, argued))
    sys.exit("\n".join(errors(results, argued)) or 0)


def _in_order(results: Results) -> Results:
    return {program.name: results[program.name] for program in PROGRAMS if program.name in results}


def tried(program: Program, only: str) -> Tried:
    """A program, and its mutants if it is proved without a mistake."""
    baseline, candidate = program.graphs()
    if not isinstance(program.verify(baseline, candidate, None).verdict, Proved):
        print(f"left out, for it is not proved itself: {program.name}", flush=True)
        return Tried(nodes=len(candidate.nodes), proved=False)
    found: list[Judged] = []
    for mutant in chosen(program.name, candidate, most=MOST):
        if only in mutant.name:
            found.append(judged(program, baseline, mutant))
            print(line(found[-1]), flush=True)
    return Tried(nodes=len(candidate.nodes), proved=True, rows=tuple(found))


def line(one: Judged) -> str:
    """What is printed of a mutant."""
    place = {"exactly": "named", "through views": f"named through views: {one.suspect}"}
    mark = "" if one.named is None else place.get(one.named, f"-> {one.suspect}")
    equal = "" if one.agrees is None else "agrees" if one.agrees else "DIFFERS"
    return f"{one.outcome:8}{one.cpu_s:6.2f} s {one.name} {mark} {equal}".rstrip()


def _made_by() -> dict[str, object]:
    names = ("torch", "numpy", "egglog")
    return {
        "script": "benchmarks/mutants.py",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "scalify": __version__,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "seed": SEED,
        "most_of_each_class": MOST,
    }


if __name__ == "__main__":
    main()
