"""Whether values refute programs that are equal, and how many of those that are not.

    PYTHONPATH=tests/support python benchmarks/refute_soundness.py [--seconds 240] [--seed 0]

No proof is asked for: every pair is searched as if nothing were known of it. Equal pairs: the proved cases of
``tests/scalify/cases``, their candidates written otherwise, random programs written otherwise
(``tests/support/sound_rewrites.py``) and done by ranks, and decoders on ranks. Wrong ones: mutants of the
proved cases' candidates of which NumPy says that outputs differ on random values. Writes
benchmarks/results/refute_soundness.json; exits with 1 if anything equal was refuted.
"""

import argparse
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic, process_time

from algebra_graphs import algebra_graph
from layered_graphs import decoder
from random_shardings import NotSharded, sharded_pair
from scalify_cases import Pair, case_names, load_pair, with_itself
from scalify_mutants import mutants
from sound_rewrites import rewritten

from scalify.errors import InvalidGraph, ScalifyError
from scalify.ir.graph import Graph, Output
from scalify.refute.budget import Search
from scalify.refute.refute import refute
from scalify.relate.model import Relations
from scalify.relate.relate import relate
from scalify.verdict import Reason, Refuted, Unknown

RESULT = Path(__file__).parent / "results" / "refute_soundness.json"
BUDGET = Search(draws=21)
UNKNOWN = Unknown(reason=Reason.UNPROVED, outputs=(), assumptions=())

Posed = tuple[str, Graph, Graph, Relations]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=240.0, help="of each half")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    start_s = process_time()
    counted: Counter[str] = Counter()
    end_s = monotonic() + asked.seconds
    for kind, baseline, candidate, relations in equal(asked.seed):
        counted[f"equal: {kind}"] += 1
        if isinstance(refute(baseline, candidate, relations, UNKNOWN, BUDGET), Refuted):
            counted["equal, refuted"] += 1
            print(f"REFUTED {kind}: {baseline.name}", file=sys.stderr)
        if monotonic() > end_s:
            break
    end_s = monotonic() + asked.seconds
    for _, baseline, candidate, relations in wrong(asked.seed):
        counted["wrong"] += 1
        counted["wrong, refuted"] += isinstance(
            refute(baseline, candidate, relations, UNKNOWN, BUDGET), Refuted
        )
        if monotonic() > end_s:
            break
    figures = {"equal, refuted": 0, **dict(sorted(counted.items()))}
    _write(figures, asked.seed, process_time() - start_s)
    print(json.dumps(figures, indent=2))
    sys.exit(1 if figures["equal, refuted"] else 0)


def equal(seed: int) -> Iterator[Posed]:
    """Equal pairs: those that are written down, then random ones without end."""
    proved = [name for name in case_names() if name.startswith("proved/")]
    for name in proved:
        pair = load_pair(name)
        yield "cases", pair.baseline, pair.candidate, pair.relations()
        yield "cases written otherwise", pair.baseline, *_otherwise(pair, Random(f"{seed}.{name}"))
    for ranks in (2, 4):
        one, many = decoder(layers=2), decoder(layers=2, ranks=ranks)
        yield "decoders", one, many, relate(one, many)
        other = rewritten(many, Random(seed))
        yield "decoders", one, other, relate(one, other)
    for number in count(seed):
        graph = _with_all_results(algebra_graph(number, steps=12))
        yield "random programs written otherwise", graph, rewritten(graph, Random(number)), with_itself(graph)
        if graph.mesh.size == 1:
            yield from _on_ranks(graph, number)


def _on_ranks(graph: Graph, number: int) -> Iterator[Posed]:
    try:
        pair = sharded_pair(graph, Random(number), noise=0.0)
    except (NotSharded, InvalidGraph):
        return
    if pair.is_finite() and not pair.differing():
        yield "random programs on ranks", graph, *_otherwise(pair, Random(number))


def _otherwise(pair: Pair, rng: Random) -> tuple[Graph, Relations]:
    other = replace(pair, candidate=rewritten(pair.candidate, rng))
    return other.candidate, other.relations()


def wrong(seed: int) -> Iterator[Posed]:
    """Mutants of right candidates that differ on random values."""
    made: list[tuple[str, int]] = []
    for name in case_names():
        if name.startswith("proved/"):
            made.extend((name, place) for place, _ in enumerate(mutants(load_pair(name).candidate)))
    Random(seed).shuffle(made)
    for name, place in made:
        pair = replace(load_pair(name), declared=False)
        mutant = list(mutants(pair.candidate))[place]
        changed = replace(pair, candidate=mutant.graph)
        try:
            differs = changed.is_finite() and bool(changed.differing())
        except ScalifyError:
            continue
        if differs:
            yield mutant.what, changed.baseline, changed.candidate, changed.relations()


def _with_all_results(graph: Graph) -> Graph:
    used = {operand for node in graph.nodes for operand in node.operands}
    loose = [node.id for node in graph.nodes if node.id not in used and node.op != "input"]
    return replace(graph, outputs=tuple(Output(name=each, value=each) for each in loose))


def _write(figures: dict[str, int], seed: int, cpu_s: float) -> None:
    made_by = {
        "script": "benchmarks/refute_soundness.py",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "versions": {"python": platform.python_version(), "numpy": version("numpy")},
        "seed": seed,
        "draws": BUDGET.draws,
        "cpu_s": round(cpu_s, 1),
    }
    RESULT.write_text(json.dumps({"made_by": made_by, **figures}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
