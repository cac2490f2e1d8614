"""Wrong edits of a production compiler's graphs: are they refused, and is the edited node the suspect?

Every node of the one-layer graphs on 2 and 4 ranks is edited in each way that ``graph_mutants`` knows. An
edited graph that is proved must compute the same numbers as the one it was made of; it is run in NumPy, with
all positions in sight and with a mask. Results: results/hlo_mutants.json.
"""

import argparse
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np
from graph_mutants import Mutant, mutants
from numpy.typing import NDArray

from scalify import __version__
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph, Node
from scalify.load import load
from scalify.prove.verify import verify
from scalify.relate.relate import relate
from scalify.verdict import Proved

Array = NDArray[Any]
Values = Mapping[str, Sequence[Array]]

GRAPHS = Path(__file__).parents[2] / "shared" / "data" / "neuron_hlo"
FOLDER = Path(__file__).parent / "results"
MOST_EXPONENT = 100.0
"""Larger constants overflow where they are an exponent."""

MOST_ROWS = 50_000
"""Rows of a weight with more are all alike (the vocabulary): they are too many to draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of one mutant: ``suspect`` is what the verdict blames, ``equal`` what NumPy says of one
    that was proved, ``softened`` whether it could only be run with smaller constants."""

    mutant: Mutant
    is_proved: bool
    suspect: str | None
    has_line: bool
    guess: str
    equal: bool | None
    softened: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether the edited node is the suspect."""
        return self.suspect == self.mutant.node.id


class Runs:
    """The outputs of a graph on two sets of inputs, and whether another's are the same."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def inputs(self) -> tuple[Mapping[str, Any], ...]:
        rng = np.random.default_rng(0)
        weights = {str(node.attrs["name"]): self._drawn(rng, node) for node in self.graph.inputs()}
        position, start, last = (str(node.attrs["name"]) for node in self.graph.inputs()[1:4])
        shapes = {str(node.attrs["name"]): node.type.shape for node in self.graph.inputs()}
        count = shapes[position][0]
        in_sight = {position: np.full(count, count - 1), start: np.zeros(shapes[start], np.int64)}
        masked = {position: np.arange(count), start: np.arange(shapes[start][0])}
        end = {last: np.full(shapes[last], count - 1)}
        return ({**weights, **in_sight, **end}, {**weights, **masked, **end})

    def _drawn(self, rng: np.random.Generator, node: Node) -> Array | list[Array]:
        shape = node.type.shape
        if node.type.dtype == "i32":
            return np.zeros(shape, np.int64)
        if shape[0] > MOST_ROWS:
            return np.broadcast_to(rng.standard_normal((1, *shape[1:])), shape)
        return [rng.standard_normal(shape) / 40 for _ in range(self.graph.mesh.size)]

    @cached_property
    def outputs(self) -> tuple[Values, ...]:
        return tuple(evaluate(self.graph, inputs) for inputs in self.inputs)

    def equal(self, other: Graph) -> bool | None:
        """Whether another graph computes the same wherever it is finite; None where it is so nowhere."""
        compared: bool | None = None
        for inputs, wanted in zip(self.inputs, self.outputs, strict=True):
            found = evaluate(other, inputs)
            if not all(np.isfinite(array).all() for arrays in found.values() for array in arrays):
                continue
            compared = True
            if not all(
                np.allclose(one, two, rtol=1e-6, atol=1e-9)
                for name, arrays in wanted.items()
                for one, two in zip(arrays, found[name], strict=True)
            ):
                return False
        return compared


def softened(graph: Graph) -> Graph:
    """Constants that no exponential can take made small: over the reals a softmax may be shifted by anything,
    in floats it overflows."""
    return replace(graph, nodes=tuple(map(_softened, graph.nodes)))


def _softened(node: Node) -> Node:
    data = node.attrs.get("data")
    if node.op != "constant" or not isinstance(data, tuple) or len(data) != 1:
        return node
    (value,) = data
    if not isinstance(value, float) or abs(value) < MOST_EXPONENT:
        return node
    return replace(node, attrs=MappingProxyType({"data": (math.copysign(3.0, value),)}))


def judged(baseline: Graph, candidate: Graph) -> list[Judged]:
    """Every mutant of the candidate, verified against the baseline."""
    relations, runs = relate(baseline, candidate), Runs(candidate)
    if not isinstance(verify(baseline, candidate, relations), Proved):
        raise SystemExit("the pair itself is not proved: mutants of it say nothing")
    soft = Runs(softened(candidate))
    found: list[Judged] = []
    for mutant in mutants(candidate):
        verdict = verify(baseline, mutant.graph, relations)
        proved = isinstance(verdict, Proved)
        suspect = None if isinstance(verdict, Proved) else verdict.suspect
        equal = runs.equal(mutant.graph) if proved else None
        is_soft = proved and equal is None
        judgement = Judged(
            mutant=mutant,
            is_proved=proved,
            suspect=suspect.candidate.node if suspect else None,
            has_line=suspect is not None and suspect.candidate.site is not None,
            guess=suspect.guess if suspect else "",
            equal=soft.equal(softened(mutant.graph)) if is_soft else equal,
            softened=is_soft,
        )
        print(_line(judgement), flush=True)
        found.append(judgement)
    return found


def _line(judgement: Judged) -> str:
    mutant = judgement.mutant
    if judgement.is_proved:
        how = "equal" if judgement.equal else "DIFFERENT"
        return f"proved   {mutant.node.id} {mutant.label}: {how}{' softened' if judgement.softened else ''}"
    mark = "exact   " if judgement.is_exact else f"MISSED -> {judgement.suspect}"
    return f"{mark} {mutant.node.id} {mutant.label} | {judgement.guess}"


def counts(found: Sequence[Judged]) -> dict[str, object]:
    """The figures that are published."""
    refused = [each for each in found if not each.is_proved]
    return {
        "mutants": len(found),
        "refused": len(refused),
        "exact_node": sum(each.is_exact for each in refused),
        "with_a_source_line": sum(each.has_line for each in refused),
        "with_a_guess": sum(bool(each.guess) for each in refused),
        "proved_and_equal": sum(each.equal is True for each in found),
        "proved_and_equal_with_smaller_constants": sum(
            each.equal is True and each.softened for each in found
        ),
        "proved_and_different": sum(each.is_proved and not each.equal for each in found),
        "missed": [
            f"{each.mutant.node.id} {each.mutant.label} -> {each.suspect}"
            for each in refused
            if not each.is_exact
        ],
        "proved": [f"{each.mutant.node.id} {each.mutant.label}" for each in found if each.is_proved],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=Path, default=GRAPHS)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    arguments = parser.parse_args()
    baseline = load(arguments.graphs / "tp1_layer1" / "graph.hlo.pb")
    figures: dict[str, object] = {}
    for ranks in arguments.ranks:
        start_s = perf_counter()
        found = judged(baseline, load(arguments.graphs / f"tp{ranks}_layer1" / "graph.hlo.pb"))
        figures[f"tp{ranks}_layer1"] = {**counts(found), "duration_s": round(perf_counter() - start_s, 1)}
    made_by = {
        "script": "benchmarks/hlo_mutants.py",
        "scalify": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "numpy": np.__version__,
    }
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps({"made_by": made_by, "graphs": figures}, indent=2)
    (FOLDER / "hlo_mutants.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
