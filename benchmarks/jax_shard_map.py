"""What the prover says of JAX's ``shard_map``: captured live, and through StableHLO as text and bytecode.

    python benchmarks/jax_shard_map.py

Parts of ``scalify_models/jax_parts.py`` against their tensor-parallel versions, right and wrong ones. Devices
are not needed: the mesh is abstract. Of each pair and way: the verdict, and for a wrong one the line that the
verdict shows first and whether it is in the function or line where the mistake was planted.

Times are CPU-seconds of one ``scalify.verify`` from graphs to verdict. Writes results/jax_shard_map.json;
exits with 1 if a wrong program was proved, or a right one was refuted or not proved.
"""

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from inspect import getsourcelines
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import jax
from jax import export
from scalify_models import jax_parts
from scalify_models.jax_parts import Built

import scalify
from scalify.capture.jax_functions import of_jax
from scalify.ir.graph import Graph
from scalify.load import load
from scalify.verdict import Proved, Refuted, Unknown

RESULT = Path(__file__).parent / "results" / "jax_shard_map.json"
PACKAGES = ("jax", "jaxlib", "egglog", "numpy")
Build = Callable[[], Built]
Way = Callable[[Build], Graph]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two programs; of a wrong one, a text in the line of its mistake."""

    baseline: Build
    candidate: Build
    mistake: str = ""


PAIRS = (
    Pair(baseline=jax_parts.mlp, candidate=jax_parts.mlp_tp),
    Pair(baseline=jax_parts.mlp, candidate=jax_parts.mlp_tp_unsummed, mistake='@ params["down"]'),
    Pair(baseline=jax_parts.mlp, candidate=jax_parts.mlp_tp_averaged, mistake="lax.pmean"),
    Pair(baseline=jax_parts.attention, candidate=jax_parts.attention_tp),
    Pair(baseline=jax_parts.attention, candidate=jax_parts.attention_tp_own_heads),
    Pair(
        baseline=jax_parts.attention,
        candidate=jax_parts.attention_tp_scaled_by_local_width,
        mistake='params["query"].shape[1]',
    ),
    Pair(
        baseline=jax_parts.attention,
        candidate=jax_parts.attention_tp_first_heads,
        mistake='params["value"], 0, width',
    ),
    Pair(baseline=jax_parts.mlp_gradient, candidate=jax_parts.mlp_tp_gradient),
    Pair(baseline=jax_parts.model, candidate=jax_parts.model_tp),
)


def captured(build: Build) -> Graph:
    """From the jaxpr."""
    return of_jax(build(), build.__name__)


def from_text(build: Build) -> Graph:
    """From a file of StableHLO with its lines."""
    function, args = build()
    return _through_file(jax.jit(function, keep_unused=True).lower(*args).as_text(debug_info=True).encode())


def from_bytecode(build: Build) -> Graph:
    """From a file with the portable artifact that jax.export makes."""
    function, args = build()
    return _through_file(export.export(jax.jit(function, keep_unused=True))(*args).mlir_module_serialized)


def _through_file(content: bytes) -> Graph:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "module.mlir"
        path.write_bytes(content)
        return load(path)


WAYS: Mapping[str, Way] = {"jaxpr": captured, "text": from_text, "bytecode": from_bytecode}


def outcome(pair: Pair, way: str) -> Mapping[str, object]:
    """Capture both programs and compare them."""
    baseline, candidate = WAYS[way](pair.baseline), WAYS[way](pair.candidate)
    start_s = process_time()
    verdict = scalify.verify(baseline, candidate)
    spent_s = process_time() - start_s
    suspect = verdict.suspect if isinstance(verdict, Refuted | Unknown) else None
    site = suspect.candidate.site if suspect else None
    return {
        "pair": f"{pair.baseline.__name__} against {pair.candidate.__name__}",
        "way": way,
        "is_right": not pair.mistake,
        "verdict": type(verdict).__name__,
        "line": f"{Path(site.file).name}:{site.line}" if site else None,
        "is_the_line": None if not pair.mistake else site is not None and pair.mistake in _text(site.line),
        "baseline_nodes": len(baseline.nodes),
        "candidate_nodes": len(candidate.nodes),
        "ranks": candidate.mesh.size,
        "cpu_s": round(spent_s, 3),
    }


def _text(line: int) -> str:
    lines, _ = getsourcelines(jax_parts)
    return lines[line - 1] if 0 < line <= len(lines) else ""


def main() -> None:
    """Run, print and write."""
    start_s = process_time()
    outcomes: list[Mapping[str, object]] = []
    for pair in PAIRS:
        for way in WAYS:
            outcomes.append(outcome(pair, way))
            print(*(outcomes[-1][key] for key in ("verdict", "pair", "way", "line", "cpu_s")), flush=True)
    right = [found for found in outcomes if found["is_right"]]
    wrong = [found for found in outcomes if not found["is_right"]]
    figures = {
        "right_pairs": len(right),
        "right_pairs_proved": sum(found["verdict"] == Proved.__name__ for found in right),
        "wrong_pairs": len(wrong),
        "wrong_pairs_refuted": sum(found["verdict"] == Refuted.__name__ for found in wrong),
        "first_line_is_the_mistake": sum(found["is_the_line"] is True for found in wrong),
        "unsound": sum(found["verdict"] == Proved.__name__ for found in wrong)
        + sum(found["verdict"] == Refuted.__name__ for found in right),
    }
    result = {"made_by": _made_by(process_time() - start_s), **figures, "pairs": outcomes}
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(*(f"{name}: {value}" for name, value in figures.items()), sep="\n")
    sys.exit(1 if figures["unsound"] or figures["right_pairs"] > figures["right_pairs_proved"] else 0)


def _made_by(cpu_s: float) -> Mapping[str, object]:
    return {
        "script": "benchmarks/jax_shard_map.py",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "cpu_s": round(cpu_s, 1),
    }


if __name__ == "__main__":
    main()
