"""What becomes of one mutant: a verdict, whether it names the mistake, and whether many draws agree."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Literal

from model_mutants import Mutant
from mutation.programs import Program

from scalify.ir.graph import Graph
from scalify.refute.budget import Search
from scalify.refute.pair import pair_of
from scalify.refute.search import search
from scalify.verdict import Proved, Refuted
from scalify.verification import Verification

ARGUMENTS = Path(__file__).parent / "equivalent.toml"
SEARCH = Search()
"""What a user gets who asks for nothing else."""

MANY = Search(duration_s=20.0, draws=90)

Outcome = Literal["refuted", "proved", "unknown"]
Named = Literal["exactly", "through views", "elsewhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of a mutant.

    ``named`` is how near the suspect is to the mistake (``graph_edits``), None if there is none. ``agrees``
    is whether many draws show no difference, None if not asked. ``family`` is that of the witness.
    """

    name: str
    kind: str
    outcome: Outcome
    named: Named | None
    suspect: str | None
    agrees: bool | None
    family: str | None
    cpu_s: float


def judged(program: Program, baseline: Graph, mutant: Mutant) -> Judged:
    """One mutant, verified."""
    start_s = process_time()
    done = program.verify(baseline, mutant.graph, SEARCH)
    cpu_s = process_time() - start_s
    verdict = done.verdict
    refuted = isinstance(verdict, Refuted)
    suspect = None if isinstance(verdict, Proved) or verdict.suspect is None else verdict.suspect
    node = suspect.candidate.node if suspect else None
    return Judged(
        name=mutant.name,
        kind=mutant.kind,
        outcome="refuted" if refuted else "proved" if isinstance(verdict, Proved) else "unknown",
        named=None if node is None else _named(mutant, node),
        suspect=node,
        agrees=None if refuted else _agrees(done),
        family=verdict.witness.draw.family if isinstance(verdict, Refuted) else None,
        cpu_s=round(cpu_s, 2),
    )


def _named(mutant: Mutant, node: str) -> Named:
    if node in mutant.exact:
        return "exactly"
    return "through views" if node in mutant.places else "elsewhere"


def _agrees(done: Verification) -> bool:
    """Whether no draw of many shows a difference in any output."""
    problem = done.problem
    pair = pair_of(problem.baseline, problem.candidate, problem.relations)
    sought = search(pair, problem.relations.outputs, MANY)
    return sought.found is None and sought.draws > 0


def arguments() -> Mapping[str, str]:
    """Why a mutant changes nothing, by its name."""
    listed = tomllib.loads(ARGUMENTS.read_text(encoding="utf-8"))["equivalent"]
    return {name: each["why"] for each in listed for name in each["mutants"]}
