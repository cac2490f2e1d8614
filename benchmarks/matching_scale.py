"""How matching grows with the model: Llama of 4 to 64 layers, hidden size 64, eager against sdpa attention.

    python benchmarks/matching_scale.py [--layers 4 8 16 32 64] [--rounds 7]

Per number of layers: operators of both sides; CPU-seconds of ``match`` (pairing and regions), the median of
interleaved rounds, each on profiles fresh from their files, as ``magneton compare`` has them; tests, that is
pairs of values whose sketches were held against each other; calls of any function while matching; the most
memory that matching held beside the profiles; and the size of the larger of the two files. Tests and calls
do not depend on how busy the machine is. Exponents are slopes of a line through the logarithms over those of
the operators. Tracing is not timed. Writes benchmarks/results/matching_scale.json.
"""

import argparse
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from types import FrameType

import numpy as np
import torch
from results import write_result
from transformers import LlamaConfig, LlamaForCausalLM

from magneton.match import match
from magneton.profile.distance import distances
from magneton.profile.model import Profile
from magneton.profile.store import load, save
from magneton.record.torch.capture import trace_callable

HIDDEN, TOKENS = 64, 16
GOAL_LAYERS = 32
GOALS = {"cpu_s_at_32_layers": 0.5, "exponent_of_tests": 1.1, "file_mb_at_32_layers": 100.0}
# The published artifact on the same models, on another machine (wall seconds; it grows as about N^1.8).
PUBLISHED_S = {4: 1.5, 8: 1.4, 16: 10.4, 32: 47.7}

Sides = tuple[Profile, Profile]
Row = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        rows: dict[int, Row] = {}
        for layers in asked.layers:
            paths = trace(layers, Path(folder))
            rows[layers] = counted(paths)
        for layers, cpu_s in timed(Path(folder), asked.layers, asked.rounds).items():
            rows[layers]["cpu_s"] = cpu_s
        origin = load(_paths(Path(folder), asked.layers[0])[0]).origin
    exponents = {name: exponent(rows, name) for name in ("tests", "calls", "cpu_s")} if len(rows) > 1 else {}
    figures = {"goals": GOALS, "published_artifact_s": PUBLISHED_S, "layers": rows, "exponents": exponents}
    show(rows, exponents)
    place = write_result("matching_scale", figures, origin)
    print(f"written to {place.name}")


def trace(layers: int, folder: Path) -> tuple[Path, Path]:
    """Both sides on the same weights and tokens, saved."""
    paths = _paths(folder, layers)
    for attention, path in zip(("eager", "sdpa"), paths, strict=True):
        tokens = torch.randint(0, 256, (2, TOKENS), generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            profile = trace_callable(_llama(layers, attention), (), {"input_ids": tokens, "use_cache": False})
        save(profile, path)
    return paths


def _paths(folder: Path, layers: int) -> tuple[Path, Path]:
    return folder / f"eager-{layers}.mgn", folder / f"sdpa-{layers}.mgn"


def _llama(layers: int, attention: str) -> torch.nn.Module:
    """Gains of norms differ from one, as trained ones do: at one, a norm of a norm is the same value."""
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=HIDDEN,
        intermediate_size=3 * HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=256,
    )
    model = LlamaForCausalLM(config).eval()
    model.set_attn_implementation(attention)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, 1.0, 0.1)
    return model


def counted(paths: tuple[Path, Path]) -> Row:
    """What does not depend on how fast the machine is."""
    sides = load(paths[0]), load(paths[1])
    tests, calls = count_work(sides)
    return {
        "operators": sum(len(side.operators) for side in sides),
        "tests": tests,
        "calls": calls,
        "peak_mb": round(peak_bytes(sides) / 1e6, 2),
        "file_mb": round(max(path.stat().st_size for path in paths) / 1e6, 3),
    }


def count_work(sides: Sides) -> tuple[int, int]:
    """Pairs of sketches compared, and calls made, in one ``match``: the interpreter tells."""
    tests = calls = 0
    comparing = distances.__code__

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal tests, calls
        calls += event in ("call", "c_call")
        if event == "call" and frame.f_code is comparing:
            tests += len(frame.f_locals["rows_x"])

    sys.setprofile(watch)
    try:
        match(*sides)
    finally:
        sys.setprofile(None)
    return tests, calls


def peak_bytes(sides: Sides) -> int:
    """The most that one ``match`` held at once, NumPy's arrays included."""
    tracemalloc.start()
    try:
        match(*sides)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def timed(folder: Path, all_layers: Sequence[int], rounds: int) -> dict[int, float]:
    """Median CPU-seconds of ``match``. One size is in memory at a time: the collector walks all there is."""
    spent: dict[int, list[float]] = {layers: [] for layers in all_layers}
    for _ in range(rounds):
        for layers in all_layers:
            sides = tuple(load(path) for path in _paths(folder, layers))
            spent[layers].append(cpu_seconds(lambda sides=sides: match(*sides)))
    return {layers: round(median(times), 4) for layers, times in spent.items()}


def cpu_seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def exponent(rows: Mapping[int, Row], name: str) -> float:
    """k where ``name`` grows as operators to the k."""
    operators = np.log([row["operators"] for row in rows.values()])
    figures = np.log([max(row[name], 1e-9) for row in rows.values()])
    return round(float(np.polyfit(operators, figures, 1)[0]), 3)


def show(rows: Mapping[int, Row], exponents: Mapping[str, float]) -> None:
    print("layers operators   CPU-s (published)      tests  per op     calls  per op  peak MB  file MB")
    for layers, row in rows.items():
        published = f"({PUBLISHED_S[layers]})" if layers in PUBLISHED_S else ""
        per_test, per_call = row["tests"] / row["operators"], row["calls"] / row["operators"]
        print(
            f"{layers:>6} {row['operators']:>9.0f} {row['cpu_s']:>7.3f} {published:<11} {row['tests']:>9.0f}"
            f" {per_test:>7.2f} {row['calls']:>9.0f} {per_call:>7.1f}"
            f" {row['peak_mb']:>8.1f} {row['file_mb']:>8.2f}"
        )
    if exponents:
        print("exponents: " + ", ".join(f"{name} {value:.2f}" for name, value in exponents.items()))
    at_goal = rows.get(GOAL_LAYERS)
    if at_goal is not None and exponents:
        verdict(f"CPU-s at {GOAL_LAYERS} layers", at_goal["cpu_s"], GOALS["cpu_s_at_32_layers"])
        verdict("exponent of tests", exponents["tests"], GOALS["exponent_of_tests"])
        verdict(f"MB of a file of {GOAL_LAYERS} layers", at_goal["file_mb"], GOALS["file_mb_at_32_layers"])


def verdict(what: str, figure: float, goal: float) -> None:
    print(f"{what}: {figure:.3g}, goal at most {goal:g}: {'met' if figure <= goal else 'MISSED'}")


if __name__ == "__main__":
    main()
