"""The whole way from files to a verdict, in this process: load both sides, relate inputs, prove or refute.

In: two programs, each a graph or the files it is in. Out: the verdict with what it is about. Whoever watches
hears what is assumed before anything is proved, and how far the proof is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from scalify.ir.graph import Graph
from scalify.load import load, load_side
from scalify.precision.finding import PrecisionFinding
from scalify.precision.look import precision
from scalify.prove.verify import Options, verify
from scalify.refute.budget import Search
from scalify.relate.model import Relations
from scalify.verdict import Proved, Refuted, Unknown, Verdict

if TYPE_CHECKING:
    from torch import nn
    from torch.export import ExportedProgram

    from scalify.capture.references import References
    from scalify.relate.stated import Stated

LOOK_UPS = frozenset({"take", "take_along", "scatter", "index_put"})
"""Operations that have a meaning only where their indices address rows that exist."""

AnyPath = str | PathLike[str]
Side: TypeAlias = "Graph | AnyPath | Sequence[AnyPath] | ExportedProgram | nn.Module | tuple[object, ...]"
"""A program: its graph, its file, a file for each of its ranks, or what PyTorch holds in memory: an exported
program, a GraphModule, or a module or GraphModule with the arguments to call it with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be proved."""

    baseline: Graph
    candidate: Graph
    relations: Relations
    refused: tuple[str, ...] = ()  # definitions that did not fit, and why


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was to be proved, and what came of it.

    ``precision`` is where the candidate rounds more than the baseline, looked at unless it is refuted.
    """

    problem: Problem
    verdict: Verdict
    precision: tuple[PrecisionFinding, ...] = ()


def verification(
    baseline: Side,
    candidate: Side,
    *,
    relations: AnyPath | None = None,
    definitions: Mapping[str, Sequence[AnyPath]] | None = None,
    ops: AnyPath | None = None,
    options: Options | None = None,
    search: Search | None = None,
    posed: Callable[[Problem], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Prove that the candidate's outputs make up the baseline's.

    ``relations`` is a file of stated ones; ``definitions`` are files of graphs by the operations they define,
    ``ops`` is a Python file of reference functions, which is run.
    Where no proof is found, values on which the programs differ are searched, unless there is no ``search``.
    """
    problem = problem_of(baseline, candidate, relations, definitions, ops)
    if posed is not None:
        posed(problem)
    graphs = problem.baseline, problem.candidate, problem.relations
    hopeless = None if search is None else partial(_differ, *graphs)
    verdict = verify(*graphs, options, progress=progress, hopeless=hopeless)
    if isinstance(verdict, Unknown) and search is not None:
        # Proofs, which are most runs, do without what it imports.
        from scalify.refute.refute import refute

        verdict = refute(*graphs, verdict, search)
    if isinstance(verdict, Proved) and search is not None and _looks_up(problem.candidate):
        from scalify.refute.reach import reached

        verdict = reached(*graphs, verdict, search)
    if isinstance(verdict, Unknown) and problem.refused:
        verdict = replace(verdict, missing=(*verdict.missing, *problem.refused))
    if isinstance(verdict, Refuted):
        return Verification(problem=problem, verdict=verdict)
    found = precision(problem.baseline, problem.candidate, problem.relations)
    return Verification(problem=problem, verdict=verdict, precision=found)


def _looks_up(graph: Graph) -> bool:
    return any(node.op in LOOK_UPS for node in graph.nodes)


def _differ(baseline: Graph, candidate: Graph, relations: Relations) -> bool:
    from scalify.refute.refute import differ

    return differ(baseline, candidate, relations)


def problem_of(
    baseline: Side,
    candidate: Side,
    relations: "AnyPath | Stated | None" = None,
    definitions: Mapping[str, Sequence[AnyPath]] | None = None,
    ops: AnyPath | None = None,
) -> Problem:
    """Both programs, and how the baseline's inputs lie on the candidate's ranks."""
    from scalify.definitions import define
    from scalify.relate.relate import relate
    from scalify.relate.stated import read_stated

    known = {target: [load(Path(path)) for path in paths] for target, paths in (definitions or {}).items()}
    references = None if ops is None else _references(ops)
    graphs = _graph(baseline, candidate), _graph(candidate, baseline)
    sides = tuple(define(graph, known, references) for graph in graphs)
    stated = read_stated(Path(relations)) if isinstance(relations, str | PathLike) else relations
    related = relate(sides[0].graph, sides[1].graph, stated)
    notes = dict.fromkeys(note for side in sides for note in (*side.graph.notes, *side.assumptions()))
    if references is not None:
        notes[references.assumption()] = None
    return Problem(
        baseline=sides[0].graph,
        candidate=sides[1].graph,
        relations=replace(related, notes=(*related.notes, *notes)),
        refused=tuple(dict.fromkeys(reason for side in sides for reason in side.refused)),
    )


def _references(path: AnyPath) -> "References":
    # With it comes PyTorch, which reading files does without.
    from scalify.capture.references import References

    return References(Path(path))


def _graph(side: Side, other: Side) -> Graph:
    if isinstance(side, Graph):
        return side
    paths = _paths(side)
    if paths is None:
        # What is in memory is PyTorch's: it is imported already.
        from scalify.capture.in_memory import graph_of

        return graph_of(side)
    if isinstance(other, Graph) or _paths(other) is not None:
        return load_side(paths)
    from scalify.capture.in_memory import weights_of

    return load_side(paths, weights_of(other))


def _paths(side: Side) -> list[Path] | None:
    """The files of a side that is in files."""
    if isinstance(side, str | PathLike):
        return [Path(side)]
    if isinstance(side, Sequence) and all(isinstance(part, str | PathLike) for part in side):
        return [Path(path) for path in cast("Sequence[AnyPath]", side)]
    return None
