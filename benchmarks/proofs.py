"""What a proof costs: CPU-seconds and memory of whole processes, median of several, interleaved.

    python benchmarks/proofs.py [--graphs FOLDER] [--rounds 5]

Three questions, written to results/proofs.json:

- production: each one-device graph of ../shared/data/neuron_hlo against those on 2, 4 and 8 ranks, 1 and 8
  layers, no relations given. Goals: 1 and 2 CPU-seconds.
- large: shapes of a model of 405 billion parameters, 126 layers, graphs on disk to verdict. Goals: 10
  CPU-seconds and 1 GB; 126 layers at most twice 16 layers; 32 ranks at most 1.1 times 8.
- depth: the same without remembering regions, at 16 and 126 layers: the exponent of the growth of the proving
  time, goal 1.1.

Graphs of the large model are captured into FOLDER where they are not there yet, which takes minutes a file.
"""

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from scalify import __version__

ROOT = Path(__file__).parents[1]
PRODUCTION = ROOT.parent / "shared" / "data" / "neuron_hlo"
MODELS = "benchmarks/scalify_models/llama.py"
RESULT = Path(__file__).parent / "results" / "proofs.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One verification, as its command line has it."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one process (with its children) took, and what it answered."""

    cpu_s: float
    memory_bytes: int
    result: dict[str, Any]


def production_tasks() -> list[Task]:
    """Every pair of the production compiler's graphs."""
    return [
        Task(
            name=f"tp1 to tp{ranks}, {layers} layer{'s' if layers > 1 else ''}",
            words=tuple(str(PRODUCTION / f"tp{n}_layer{layers}" / "graph.hlo.pb") for n in (1, ranks)),
        )
        for layers in (1, 8)
        for ranks in (2, 4, 8)
    ]


def large_tasks(folder: Path) -> list[Task]:
    """The model of 405 billion parameters, made where it is not there."""
    deep, shallow = captured(folder, "405b", "baseline_sdpa"), captured(folder, "405b-16", "baseline_sdpa")
    deep_8 = captured(folder, "405b", "tensor_parallel", 8)
    shallow_8, shallow_32 = (captured(folder, "405b-16", "tensor_parallel", ranks) for ranks in (8, 32))
    return [
        Task(name="16 layers, 8 ranks", words=(shallow, shallow_8)),
        Task(name="16 layers, 32 ranks", words=(shallow, shallow_32)),
        Task(name="126 layers, 8 ranks", words=(deep, deep_8)),
        Task(name="16 layers, 8 ranks, nothing remembered", words=(shallow, shallow_8, "--no-memo")),
        Task(name="126 layers, 8 ranks, nothing remembered", words=(deep, deep_8, "--no-memo")),
    ]


def captured(folder: Path, size: str, build: str, ranks: int = 1) -> str:
    """The file of a captured program."""
    place = folder / f"{size}-{build}-{ranks}.pt"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        words = ["capture", f"{MODELS}:{build}", "-o", str(place)]
        words += ["--mesh", f"tp={ranks}"] if ranks > 1 else []
        environment = {**os.environ, "SCALIFY_LLAMA": size}
        subprocess.run([sys.executable, "-m", "scalify", *words], cwd=ROOT, env=environment, check=True)
    return str(place)


def run(task: Task, folder: Path) -> Run:
    """Verify in a process of its own; children's time and the largest process's memory are counted."""
    place = folder / "result.json"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        words = [sys.executable, "-m", "scalify", "verify", *task.words, "--format", "json"]
        with place.open("wb") as out:
            subprocess.run(words, cwd=ROOT, stdout=out, stderr=subprocess.DEVNULL, check=False)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(writer, json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        cpu_s, memory_bytes = json.loads(told.read())
    os.waitpid(child, 0)
    return Run(cpu_s=cpu_s, memory_bytes=memory_bytes, result=json.loads(place.read_text(encoding="utf-8")))


def measured(tasks: Sequence[Task], rounds: int) -> dict[str, dict[str, object]]:
    """All tasks in turn, ``rounds`` times over."""
    runs: dict[str, list[Run]] = {task.name: [] for task in tasks}
    with TemporaryDirectory() as folder:
        for _ in range(rounds):
            for task in tasks:
                runs[task.name].append(run(task, Path(folder)))
                print(f"{task.name}: {runs[task.name][-1].cpu_s:.2f} CPU-s", flush=True)
    return {name: _figures(found) for name, found in runs.items()}


def _figures(runs: Sequence[Run]) -> dict[str, object]:
    cpu_s = [found.cpu_s for found in runs]
    work = runs[-1].result["work"]
    return {
        "verdict": sorted({str(found.result["verdict"]) for found in runs}),
        "cpu_s": round(median(cpu_s), 3),
        "cpu_s_least_most": [round(min(cpu_s), 3), round(max(cpu_s), 3)],
        "proving_cpu_s": round(median(float(found.result["work"]["cpu_s"]) for found in runs), 3),
        "memory_mb": round(max(found.memory_bytes for found in runs) / 1e6),
        "work": {name: work[name] for name in sorted(work) if name != "cpu_s"},
    }


def comparisons(large: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Ratios of medians, and the exponent of growth with depth."""
    deep, shallow = large["126 layers, 8 ranks"], large["16 layers, 8 ranks"]
    wide = large["16 layers, 32 ranks"]
    slow = [large[f"{layers} layers, 8 ranks, nothing remembered"] for layers in (16, 126)]
    growth = float(slow[1]["proving_cpu_s"]) / float(slow[0]["proving_cpu_s"])
    return {
        "126 layers over 16": round(float(deep["cpu_s"]) / float(shallow["cpu_s"]), 3),
        "32 ranks over 8": round(float(wide["cpu_s"]) / float(shallow["cpu_s"]), 3),
        "exponent without memory": round(math.log(growth) / math.log(126 / 16), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", type=Path, default=None, help="where captured graphs are kept")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    figures: dict[str, object] = {}
    if PRODUCTION.is_dir():
        figures["production"] = measured(production_tasks(), asked.rounds)
    if asked.graphs is not None:
        large = measured(large_tasks(asked.graphs.resolve()), asked.rounds)
        figures["large"], figures["comparisons"] = large, comparisons(large)
    made_by = {
        "script": "benchmarks/proofs.py",
        "scalify": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "python": platform.python_version(),
        "rounds": asked.rounds,
        "load_average": os.getloadavg()[0],
    }
    RESULT.write_text(json.dumps({"made_by": made_by, **figures}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
