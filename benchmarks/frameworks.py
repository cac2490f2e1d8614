"""What the prover says of frameworks' own code, captured from the modules that they ship.

    PYTHONPATH=tests/support python benchmarks/frameworks.py

Transformers' two attentions of one model; Transformers' Llama against a tensor-parallel one; modules that
PyTorch's ``parallelize_module`` distributes, some by a wrong plan; parts of Megatron-core and its GPT, on one
rank and on several. Everything is tiny and on the meta device. What is not installed is skipped, and said so
(Megatron-core is enough without its dependencies: ``pip install --no-deps megatron-core``).

Times are CPU-seconds: ``capture_cpu_s`` of both graphs as far as they were not captured before, ``cpu_s`` of
one ``scalify.verify`` from graphs to verdict. Writes benchmarks/results/frameworks.json; exits with 1 if a
wrong program was proved.
"""

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import process_time

from framework_models import (
    FAMILIES,
    LAYER_PLANS,
    ROUTERS,
    decoder_alone,
    decoder_by,
    graph_of,
    language_model,
    layer_alone,
    layer_by,
    router_alone,
    router_by,
)
from scalify_models import llama
from torch.distributed.tensor import Replicate, Shard

import scalify
from scalify.capture import captured
from scalify.capture.exported import export, program_of
from scalify.capture.fake_ranks import as_rank
from scalify.capture.target import built
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh
from scalify.load.torch_export.translate import translate
from scalify.verdict import Proved, Unknown

RESULT = Path(__file__).parent / "results" / "frameworks.json"
PACKAGES = ("torch", "transformers", "megatron-core", "egglog", "numpy")
Capture = Callable[[], Graph]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Two programs, and whether they are equal."""

    framework: str
    name: str
    baseline: Capture
    candidate: Capture
    is_right: bool = True


def transformers_cases() -> Iterator[Case]:
    """Two attentions of one model, and Llama on ranks; with more ranks than key heads these are repeated."""
    for family in FAMILIES:
        yield Case(
            framework="transformers",
            name=f"{family}, eager against sdpa",
            baseline=partial(graph_of, language_model(family, "eager")),
            candidate=partial(graph_of, language_model(family, "sdpa")),
        )
    os.environ["SCALIFY_LLAMA"] = "tiny"
    baseline = cache(partial(graph_of, llama.baseline_sdpa))
    for ranks in (2, 4, 8, 16):
        yield Case(
            framework="transformers",
            name=f"Llama against its tensor-parallel version, {ranks} ranks",
            baseline=baseline,
            candidate=partial(graph_of, llama.tensor_parallel, ranks=ranks),
        )


def pytorch_cases() -> Iterator[Case]:
    """What ``parallelize_module`` makes of a layer, a router of experts and a decoder."""
    layer, decoder = (cache(partial(graph_of, build)) for build in (layer_alone(), decoder_alone()))
    for ranks in (2, 4):
        for name, plan in LAYER_PLANS.items():
            yield Case(
                framework="torch parallelize_module",
                name=f"layer, {name}, {ranks} ranks",
                baseline=layer,
                candidate=partial(graph_of, layer_by(plan), ranks=ranks),
                is_right=plan.is_right,
            )
        for name, style in ROUTERS.items():
            yield Case(
                framework="torch parallelize_module",
                name=f"router, gate cut {name}, {ranks} ranks",
                baseline=partial(graph_of, router_alone),
                candidate=partial(graph_of, router_by(style), ranks=ranks),
            )
        for name, head in (("whole", Replicate()), ("cut", Shard(-1))):
            yield Case(
                framework="torch parallelize_module",
                name=f"decoder, logits {name}, {ranks} ranks",
                baseline=decoder,
                candidate=partial(graph_of, decoder_by(head), ranks=ranks),
            )


def megatron_cases() -> Iterator[Case]:
    """Parts of Megatron-core on one rank and on more."""
    from scalify_models.megatron import PARTS, Part, build_of, on_meta

    def alone(part: Part) -> Graph:
        one = Mesh(axes=(("tp", 1),))
        with on_meta(), as_rank(one, 0) as membership:
            module = built(build_of(part)(0, membership.groups))
            groups = membership.partitions()
            return translate(program_of(export(module), name="alone", mesh=one, groups=groups))

    def on_ranks(part: Part, ranks: int) -> Graph:
        with on_meta():
            return captured(build_of(part), name="ranks", mesh=Mesh(axes=(("tp", ranks),)))

    for name, part in PARTS.items():
        baseline = cache(partial(alone, part))
        for ranks in (2, 4):
            yield Case(
                framework="megatron-core",
                name=f"{name}, {ranks} ranks",
                baseline=baseline,
                candidate=partial(on_ranks, part, ranks),
                is_right=part.is_right,
            )


SOURCES: Mapping[str, Callable[[], Iterator[Case]]] = {
    "transformers": transformers_cases,
    "torch": pytorch_cases,
    "megatron": megatron_cases,
}


def outcome(case: Case) -> Mapping[str, object]:
    """Capture both programs and compare them."""
    start_s = process_time()
    baseline, candidate = case.baseline(), case.candidate()
    captured_s = process_time()
    verdict = scalify.verify(baseline, candidate)
    done_s = process_time()
    suspect = verdict.suspect if isinstance(verdict, Unknown) else None
    return {
        "framework": case.framework,
        "case": case.name,
        "is_right": case.is_right,
        "verdict": type(verdict).__name__,
        "layouts": [output.layout for output in verdict.outputs],
        "suspect": suspect and f"{suspect.candidate.op} {suspect.candidate.node}",
        "baseline_nodes": len(baseline.nodes),
        "candidate_nodes": len(candidate.nodes),
        "ranks": candidate.mesh.size,
        "capture_cpu_s": round(captured_s - start_s, 2),
        "cpu_s": round(done_s - captured_s, 3),
    }


def main() -> None:
    """Run, print and write."""
    start_s = process_time()
    outcomes: list[Mapping[str, object]] = []
    skipped = {name: "not installed" for name in SOURCES if find_spec(name) is None}
    for name, cases in SOURCES.items():
        for case in cases() if name not in skipped else ():
            outcomes.append(outcome(case))
            print(*(outcomes[-1][key] for key in ("verdict", "framework", "case", "cpu_s")), flush=True)
    right = [found for found in outcomes if found["is_right"]]
    unsound = [found for found in outcomes if not found["is_right"] and found["verdict"] == Proved.__name__]
    figures = {
        "right_pairs": len(right),
        "right_pairs_proved": sum(found["verdict"] == Proved.__name__ for found in right),
        "wrong_pairs": len(outcomes) - len(right),
        "unsound": len(unsound),
        "skipped": skipped,
        "pairs": outcomes,
    }
    result = {"made_by": _made_by(process_time() - start_s), **figures}
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(*(f"{name}: {value}" for name, value in figures.items() if name != "pairs"), sep="\n")
    sys.exit(1 if unsound else 0)


def _made_by(cpu_s: float) -> Mapping[str, object]:
    return {
        "script": "benchmarks/frameworks.py",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "versions": {"python": platform.python_version(), **_versions()},
        "cpu_s": round(cpu_s, 1),
    }


def _versions() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()
