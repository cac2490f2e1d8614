"""Mistakes planted in parallel language models: are they refuted, and is the mistake named?

    PYTHONPATH=tests/support python -W ignore benchmarks/mutants.py

The programs are captured: decoders on one device and on ranks, and training steps with their gradients
(benchmarks/scalify_models). Of each class of mistakes (tests/support/model_mutants.py) some are drawn in each
program, with a seed that was fixed beforehand, and made as one edit of its graph; each is verified against
the program on one device. A mutant is found at its place if the suspect is a node that was changed, or
the first that computes with what was changed.

A mutant that is not refuted is run on many more draws. If all agree, it may be equivalent; that counts only
with an argument in benchmarks/mutation/equivalent.toml. Without one, a proved mutant is an error, and so is
a proved one that differs on any draw: the exit status is 1.

Times are seconds of processor time of one verification. Writes benchmarks/results/mutants.json.
"""

import argparse
import json
import os
import platform
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import process_time
from typing import Literal

import numpy as np
from model_mutants import CLASSES, SEED, Mutant, chosen
from scalify_models import decoders
from scalify_models.training import BUILDS
from torch import __version__ as torch_version

from scalify import __version__
from scalify.capture import captured
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh
from scalify.refute.budget import Search
from scalify.refute.pair import pair_of
from scalify.refute.search import search
from scalify.verdict import Proved, Refuted
from scalify.verification import Verification, verification

RESULT = Path(__file__).parent / "results" / "mutants.json"
ARGUMENTS = Path(__file__).parent / "mutation" / "equivalent.toml"
MOST = 2
SEARCH = Search(duration_s=8.0, draws=24)
MANY = Search(duration_s=20.0, draws=90)

Outcome = Literal["refuted", "proved", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of a mutant. ``agrees`` is whether many draws show no difference; None if not asked."""

    name: str
    kind: str
    outcome: Outcome
    is_located: bool
    suspect: str | None
    agrees: bool | None
    argument: str | None
    family: str | None
    cpu_s: float

    @property
    def is_equivalent(self) -> bool:
        """Argued, and no draw against it."""
        return self.argument is not None and self.agrees is True


def judged_in(number: int, most: int, only: str) -> tuple[Judged, ...] | None:
    """All mutants of one program; None if it is not proved without a mistake: mutants say nothing then."""
    name, baseline, candidate, mesh, backward = tuple(builds())[number]
    one = captured(baseline, name="baseline", backward=backward)
    other = captured(candidate, name="candidate", mesh=mesh, backward=backward)
    if not isinstance(verification(one, other).verdict, Proved):
        return None
    arguments = tomllib.loads(ARGUMENTS.read_text(encoding="utf-8")) if ARGUMENTS.is_file() else {}
    found: list[Judged] = []
    for mutant in chosen(name, other, most=most):
        if only in mutant.name:
            found.append(judged(one, arguments, mutant))
            print(line(found[-1]), flush=True)
    return tuple(found)


def builds() -> Iterator[tuple[str, decoders.Build, decoders.Build, Mesh, bool]]:
    both = Mesh(axes=(("dp", 2), ("tp", 2)))
    tensor = Mesh(axes=(("tp", 2),))
    yield "Llama forward", decoders.llama_alone, decoders.llama_in_parts, both, False
    yield "GPT forward", decoders.gpt_alone, decoders.gpt_in_parts, tensor, False
    for pair in BUILDS:
        if pair.mesh.size <= 2 and "4" not in pair.name:
            name = pair.name.removesuffix(", 2 ranks")
            yield f"{name}, trained", pair.baseline, pair.candidate, pair.mesh, pair.backward


def judged(baseline: Graph, arguments: Mapping[str, str], mutant: Mutant) -> Judged:
    """One mutant, verified."""
    start_s = process_time()
    done = verification(baseline, mutant.graph, search=SEARCH)
    cpu_s = process_time() - start_s
    verdict = done.verdict
    refuted = isinstance(verdict, Refuted)
    suspect = None if isinstance(verdict, Proved) or verdict.suspect is None else verdict.suspect
    node = suspect.candidate.node if suspect else None
    return Judged(
        name=mutant.name,
        kind=mutant.kind,
        outcome="refuted" if refuted else "proved" if isinstance(verdict, Proved) else "unknown",
        is_located=node in mutant.places,
        suspect=node,
        agrees=None if refuted else _agrees(done),
        argument=arguments.get(mutant.name),
        family=verdict.witness.draw.family if isinstance(verdict, Refuted) else None,
        cpu_s=round(cpu_s, 2),
    )


def _agrees(done: Verification) -> bool:
    """Whether no draw of many shows a difference in any output."""
    problem = done.problem
    pair = pair_of(problem.baseline, problem.candidate, problem.relations)
    sought = search(pair, problem.relations.outputs, MANY)
    return sought.found is None and sought.draws > 0


def line(one: Judged) -> str:
    """What is printed of a mutant."""
    mark = "" if one.outcome == "proved" else " at its place" if one.is_located else f" -> {one.suspect}"
    equal = "" if one.agrees is None else " agrees" if one.agrees else " DIFFERS"
    argued = " argued" if one.argument else ""
    return f"{one.outcome:8}{one.cpu_s:6.2f} s {one.name}{mark}{equal}{argued}"


def summary(found: Sequence[Judged]) -> dict[str, object]:
    """The figures of some mutants."""
    wrong = [one for one in found if not one.is_equivalent]
    refuted = [one for one in wrong if one.outcome == "refuted"]
    return {
        "mutants": len(found),
        "equivalent": len(found) - len(wrong),
        "refuted": len(refuted),
        "refuted_at_its_place": sum(one.is_located for one in refuted),
        "unknown": sum(one.outcome == "unknown" for one in wrong),
        "proved": sum(one.outcome == "proved" for one in wrong),
        "median_cpu_s": round(median(one.cpu_s for one in found), 2) if found else None,
    }


def table(found: Sequence[Judged]) -> str:
    """A line for each class."""
    rows = [f"{'class':22}{'wrong':>7}{'refuted':>9}{'placed':>8}{'unknown':>9}{'proved':>8}{'equal':>7}"]
    for kind in (*CLASSES, "all"):
        figures = summary([one for one in found if kind in (one.kind, "all")])
        wrong = int(str(figures["mutants"])) - int(str(figures["equivalent"]))
        rows.append(
            f"{kind:22}{wrong:>7}{figures['refuted']:>9}{figures['refuted_at_its_place']:>8}"
            f"{figures['unknown']:>9}{figures['proved']:>8}{figures['equivalent']:>7}"
        )
    return "\n".join(rows)


def errors(found: Sequence[Judged]) -> list[str]:
    """What must not be: a wrong program proved, or an equivalent one without an argument."""
    return [
        f"{one.name}: proved, but {'nobody argues why it is right' if one.agrees else 'it differs'}"
        for one in found
        if one.outcome == "proved" and not one.is_equivalent
    ]


def written(found: Sequence[Judged], names: Sequence[str]) -> None:
    """The results, with where they come from."""
    kinds = {kind: summary([one for one in found if one.kind == kind]) for kind in CLASSES}
    content = {
        "made_by": {
            "script": "benchmarks/mutants.py",
            "scalify": __version__,
            "torch": torch_version,
            "numpy": np.__version__,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "cores": os.cpu_count(),
            "platform": platform.machine(),
            "seed": SEED,
            "verifying_cpu_s": round(sum(one.cpu_s for one in found), 1),
        },
        "models": list(names),
        "all": summary(found),
        "by_class": kinds,
        "equivalent": [one.name for one in found if one.is_equivalent],
        "not_refuted": [
            f"{one.name}: {one.outcome}{', all draws agree' if one.agrees else ''}"
            for one in found
            if one.outcome != "refuted" and not one.is_equivalent
        ],
        "not_at_their_place": [
            f"{one.name} -> {one.suspect}" for one in found if one.outcome == "refuted" and not one.is_located
        ],
    }
    RESULT.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=int, default=MOST, help="mutants of each class in each program")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--model", default="", help="a part of the names of programs; nothing is written then"
    )
    parser.add_argument("--only", default="", help="a part of the names of mutants; likewise")
    arguments = parser.parse_args()
    found: list[Judged] = []
    names = [name for name, *_ in builds()]
    judge = partial(judged_in, most=arguments.most, only=arguments.only)
    chosen_models = [number for number, name in enumerate(names) if arguments.model in name]
    with ProcessPoolExecutor(max_workers=arguments.jobs, mp_context=get_context("spawn")) as pool:
        for number, mutants in zip(chosen_models, pool.map(judge, chosen_models), strict=True):
            if mutants is None:
                print(f"left out, for it is not proved itself: {names[number]}", flush=True)
                names[number] = ""
            found.extend(mutants or ())
            if not (arguments.only or arguments.model):
                written(found, [name for name in names[: number + 1] if name])
    print(table(found))
    sys.exit("\n".join(errors(found)) or 0)


if __name__ == "__main__":
    main()
