"""How far our replay, plain windows and Zeus' windows are from the truth, on simulated boards that know it.

    python benchmarks/measurement_accuracy.py [--runs 200] [--seed 6]

Each board has a gain, a phase, noise and a kind of counter of its own, drawn from the seed. Time is virtual.
The power readings are those of published measurements (arXiv 2312.02741), the operators draw what those of
the published replay draw (arXiv 2512.08365: 266, 317 and 455 W). Errors are against truth times gain: a
board's gain is common to all that is read on it, cancels in ratios and is told beside the figures. Writes
benchmarks/results/measurement_accuracy.json.

Goals: replay within 1 %; of --runs intervals on each board 91.5 % hold the truth, their median half width at
most 2 %; operators that differ by 5 % told apart in 90 % of the runs, equal ones in at most 8 %; a disturbed
window stays within its interval or is rejected and says why; the operators of a step of a Llama sum to the
clean pass within 3 %.
"""

import argparse
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import Queue
from random import Random
from statistics import median
from typing import Any

from simulated_library import build_library, environment
from simulated_scenarios import Host

from magneton import __version__

RESULT = Path(__file__).parent / "results" / "measurement_accuracy.json"
BOARDS = ("A100", "H100", "RTX_4090")
# W and s; boards whose limit is below 455 W are given a higher one.
OPERATORS = (
    {"busy_w": 266, "busy_s": 2e-5},
    {"busy_w": 317, "busy_s": 3.2e-4},
    {"busy_w": 455, "busy_s": 5e-3},
)
LENGTHS_S = (2e-4, 1e-3, 5e-3)  # of operators in the many runs
DISTURBANCES: Mapping[str, tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]] = {
    "the room warms by 20 °C": ({}, [{"kind": "AmbientShift", "amount": 20.0, "at_s": 5.0}]),
    "thermal throttling for 4 s": ({}, [{"kind": "Throttled", "at_s": 12.0, "until_s": 16.0}]),
    "thermal throttling to the end": ({}, [{"kind": "Throttled", "at_s": 12.0}]),
    "a foreign process for 4 s": ({}, [{"kind": "ForeignProcess", "at_s": 12.0, "until_s": 16.0}]),
    "a foreign process throughout": ({}, [{"kind": "ForeignProcess", "at_s": 0.0}]),
    "reads soon after another are stale": ({"hold_s": 0.03}, ()),
    "and what was spent between is lost": ({"hold_s": 0.03, "hold_loses": True}, ()),
    "the counter stands still for 3 s": (
        {},
        [{"kind": "CounterFrozen", "at_s": 12.0, "until_s": 15.0, "loses": True}],
    ),
    "the counter is reset": ({}, [{"kind": "CounterReset", "at_s": 12.0}]),
    "the counter falls back by 50 J": ({}, [{"kind": "CounterRollback", "amount": 50.0, "at_s": 12.0}]),
    "the board is lost": ({}, [{"kind": "CallFails", "target": "*", "code": 15, "at_s": 16.0}]),
    "permission is withdrawn": (
        {},
        [{"kind": "CallFails", "target": "nvmlDeviceGetTotalEnergyConsumption", "code": 4, "at_s": 16.0}],
    ),
}


class Hosts:
    """Processes with the simulated NVML; each call goes to one that is free."""

    def __init__(self, count: int) -> None:
        found = environment(build_library())
        found["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent / "measurement")
        self._free: Queue[Host] = Queue()
        self._pool = ThreadPoolExecutor(count)
        for _ in range(count):
            self._free.put(Host(found))

    def map(self, target: str, calls: Iterable[Mapping[str, Any]]) -> list[Any]:
        return list(self._pool.map(partial(self._call, target), calls))

    def close(self) -> None:
        self._pool.shutdown()
        while not self._free.empty():
            self._free.get().close()

    def _call(self, target: str, call: Mapping[str, Any]) -> Any:
        host = self._free.get()
        try:
            return host.call(target, **call)
        finally:
            self._free.put(host)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    hosts = Hosts(asked.jobs)
    random = Random(asked.seed)
    figures = {
        "accuracy": accuracy(hosts, random),
        "coverage": {board: coverage(hosts, board, random, asked.runs) for board in BOARDS},
        "apart": {f"{gap:.0%}": apart(hosts, random, asked.runs, gap) for gap in (0.05, 0.0)},
        "disturbed": disturbed(hosts, random),
        "step": step(hosts, random),
    }
    hosts.close()
    made_by = {
        "script": "benchmarks/measurement_accuracy.py",
        "magneton": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": asked.seed,
        "runs": asked.runs,
        "platform": platform.machine(),
        "provenance": "simulated boards, virtual time",
    }
    RESULT.write_text(json.dumps({"made_by": made_by, **figures}, indent=2) + "\n", encoding="utf-8")
    print_figures(figures, asked.runs)


def a_board(random: Random) -> dict[str, Any]:
    """A specimen: what differs between boards of one kind."""
    return {
        "gain": random.uniform(0.95, 1.05),
        "noise_w": 2.0,
        "phase_s": random.uniform(0.0, 0.1),
        "jitter_s": 0.002,
        "counter": random.choice(("integral", "sampled")),
        "limit_w": 500.0,
    }


def accuracy(hosts: Hosts, random: Random) -> list[dict[str, Any]]:
    """Each method on each board and operator: the error's median and range."""
    cells = [
        (shape, work, a_board(random), random.randrange(2**31)) for shape in BOARDS for work in OPERATORS
    ]
    replays = hosts.map(
        "replays:replay",
        (
            {"shape": shape, "works": [work], "board": board, "seed": seed}
            for shape, work, board, seed in cells
        ),
    )
    others = {
        name: hosts.map(
            f"windows:{name}",
            (
                {"shape": shape, "work": work, "board": board, "seed": seed, "repeats": 20}
                for shape, work, board, seed in cells
            ),
        )
        for name in ("plain", "zeus")
    }
    rows: list[dict[str, Any]] = []
    for index, (shape, work, board, _) in enumerate(cells):
        windows = {
            name: {"median": median(errors), "lowest": min(errors), "highest": max(errors)}
            for kind in others.values()
            for name, errors in kind[index].items()
        }
        ours = replays[index]
        rows.append({"board": shape, **work, "counter": board["counter"], "windows": windows, "replay": ours})
    return rows


def coverage(hosts: Hosts, shape: str, random: Random, runs: int) -> dict[str, Any]:
    """How often an interval holds the truth, and how wide it is."""
    calls = [
        {
            "shape": shape,
            "works": [{"busy_w": random.uniform(150, 455), "busy_s": random.choice(LENGTHS_S)}],
            "board": a_board(random),
            "seed": random.randrange(2**31),
        }
        for _ in range(runs)
    ]
    found = [reply["operators"][0] for reply in hosts.map("replays:replay", calls)]
    read = [figure for figure in found if figure["n"]]
    return {
        "runs": runs,
        "read": len(read),
        "cover": sum(figure["covers"] for figure in read),
        "median_half_width": median(figure["half_width"] for figure in read),
        "median_error": median(abs(figure["error"]) for figure in read),
        "worst_error": max(abs(figure["error"]) for figure in read),
    }


def apart(hosts: Hosts, random: Random, runs: int, gap: float) -> dict[str, Any]:
    """Pairs of operators of equal latency, the second drawing ``gap`` more: how often they are told apart."""
    calls: list[dict[str, Any]] = []
    for run in range(runs):
        busy_w, busy_s = random.uniform(150, 430), random.choice(LENGTHS_S)
        calls.append(
            {
                "shape": BOARDS[run % len(BOARDS)],
                "works": [{"busy_w": w, "busy_s": busy_s} for w in (busy_w, busy_w * (1 + gap))],
                "board": a_board(random),
                "seed": random.randrange(2**31),
            }
        )
    ratios = [reply["ratio"] for reply in hosts.map("replays:replay", calls)]
    read = [ratio for ratio in ratios if ratio is not None]
    return {
        "runs": runs,
        "read": len(read),
        "told_apart": sum(not ratio["low"] <= 1 <= ratio["high"] for ratio in read),
        "cover": sum(ratio["low"] <= ratio["truth"] <= ratio["high"] for ratio in read),
        "median_half_width": median((ratio["high"] - ratio["low"]) / 2 for ratio in read),
    }


def disturbed(hosts: Hosts, random: Random) -> list[dict[str, Any]]:
    """What becomes of a replay in the middle of which something happens."""
    cells = [(shape, name) for shape in BOARDS for name in DISTURBANCES]
    calls = [
        {
            "shape": shape,
            "works": [{"busy_w": 317, "busy_s": 1e-3}],
            "board": {**a_board(random), **DISTURBANCES[name][0]},
            "faults": DISTURBANCES[name][1],
            "seed": random.randrange(2**31),
        }
        for shape, name in cells
    ]
    replies = hosts.map("replays:outcome", calls)
    return [
        {"board": shape, "disturbance": name, **reply}
        for (shape, name), reply in zip(cells, replies, strict=True)
    ]


def step(hosts: Hosts, random: Random) -> list[dict[str, Any]]:
    """A step of a Llama on each board: what its operators cost in replay, together, and what it costs."""
    calls = [
        {"shape": shape, "board": a_board(random), "seed": random.randrange(2**31)}
        for shape in ("V100", *BOARDS)
    ]
    replies = hosts.map("step:step", calls)
    return [{"board": call["shape"], **reply} for call, reply in zip(calls, replies, strict=True)]


def print_figures(figures: Mapping[str, Any], runs: int) -> None:
    print("Errors: median [lowest, highest] of 20 windows; replay: of 7 rounds, with its 95 % interval\n")
    for row in figures["accuracy"]:
        print(f"{row['board']}, {row['busy_w']} W for {row['busy_s'] * 1e6:g} us, counter {row['counter']}")
        for name, error in row["windows"].items():
            print(f"  {name:<40}{error['median']:+8.1%} [{error['lowest']:+.1%}, {error['highest']:+.1%}]")
        ours = row["replay"]["operators"][0]
        print(f"  {'our replay':<40}{ours['error']:+8.2%} ± {ours['half_width']:.2%}\n")
    for board, found in figures["coverage"].items():
        print(
            f"{board}: {found['cover']} of {found['read']} intervals hold the truth"
            f" (goal {0.915 * runs:.0f}), median half width {found['median_half_width']:.2%}"
            f" (goal 2 %), worst error {found['worst_error']:.2%}"
        )
    for gap, found in figures["apart"].items():
        print(f"operators {gap} apart: told apart in {found['told_apart']} of {found['read']} runs")
    print()
    for row in figures["disturbed"]:
        print(f"{row['board']}, {row['disturbance']}: {row['verdict']}")
        for gap, times in row["gaps"].items():
            print(f"    {times} x no reading: {gap}")
        for why, times in row["again"].items():
            print(f"    {times} x read again: {why}")
    print()
    for row in figures["step"]:
        print(
            f"{row['board']}, a step of {row['operators']} operators of {row['keys']} kinds:"
            f" {row['clean_j']:.2f} J clean, {row['operators_j']:.2f} J in replay,"
            f" residual {row['residual']:+.2%} (goal 3 %)"
        )


if __name__ == "__main__":
    main()
