"""A whole validation: opens bench and meter, runs parts while there is time, keeps the result on disk."""

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from gpu import parts
from gpu.bench import Bench
from gpu.budget import Budget
from gpu.parts import Site

from magneton import __version__
from magneton.errors import MagnetonError
from magneton.meters.board import Board, load_nvml, open_board
from magneton.meters.nvml import NvmlMeter, open_nvml
from magneton.meters.visible import board_indices

SCHEMA, VERSION = "magneton-gpu-validation", 1
AROUND_WINDOW_S = 0.1  # until the board has been asked what it is like, before and after a window
SEED = 20251  # of the pauses before plain windows


@dataclass(slots=True, kw_only=True)
class Result:
    """What is known so far, on disk after each part."""

    place: Path
    body: dict[str, Any]
    parts: list[dict[str, object]] = field(default_factory=list[dict[str, object]])

    def note(self, name: str, state: str, seconds: float = 0.0, why: str = "") -> None:
        self.parts.append({"name": name, "state": state, "seconds": round(seconds, 2), "why": why})
        print(
            f"{name}: {state}{f', {seconds:.1f} s' if seconds else ''}{f', {why}' if why else ''}",
            file=sys.stderr,
        )

    def save(self) -> None:
        states = {"parts": self.parts} | {
            f"{state}_parts": [part["name"] for part in self.parts if part["state"] == state]
            for state in ("dropped", "failed")
        }
        text = json.dumps(self.body | states, indent=2, allow_nan=False) + "\n"
        aside = self.place.with_name(f".{self.place.name}.part")
        aside.write_text(text, encoding="utf-8")
        aside.replace(self.place)


def validate(place: Path, bench_name: str, device: str, budget_s: float) -> int:
    """Measure, write the result to ``place``, and return the exit status."""
    bench = open_bench(bench_name, device)
    budget = Budget(bench.clock, budget_s)
    result = Result(place=place, body=dict(about(bench, bench_name, budget_s)))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        result.save()
    except OSError as error:
        raise MagnetonError(f"cannot write {place}: {error.strerror}", hint="name another file") from error
    nvml = load_nvml()
    (index,) = board_indices(nvml, bench.device, os.environ)
    with (
        closing(open_board(nvml, index)) as board,
        closing(probed_meter(nvml, bench, board, result)) as meter,
    ):
        run_parts(bench, board, meter, budget, result)
    result.body["made_by"]["spent_s"] = round(budget.spent_s(), 1)
    result.body["summary"] = parts.summary(result.body["operators"], result.body["cases"])
    result.save()
    print(place)
    return 4 if any(part["state"] == "failed" for part in result.parts) else 0


def open_bench(name: str, device: str) -> Bench:
    module, _, kind = name.partition(":")
    try:
        return cast("Bench", getattr(import_module(module), kind)(device))
    except (ModuleNotFoundError, AttributeError) as error:
        raise MagnetonError(f"there is no bench {name!r}: {error}", hint="write MODULE:CLASS") from error


def about(bench: Bench, bench_name: str, budget_s: float) -> Mapping[str, object]:
    made_by = {
        "script": "benchmarks/gpu/validate.sh",
        "magneton": __version__,
        "bench": bench_name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "platform": platform.machine(),
        "budget_s": budget_s,
        "seed": SEED,
    }
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "made_by": made_by,
        "machine": dict(bench.machine()),
        "probe": None,
        "meter": None,
        "lengths": None,
        "idle": None,
        "operators": [],
        "overhead": None,
        "cases": [],
        "summary": None,
    }


def probed_meter(nvml: Any, bench: Bench, board: Board, result: Result) -> NvmlMeter:
    """Probed afresh: a validation does not believe what was found another day."""
    began_s = bench.clock.now_s()
    meter = open_nvml(nvml, bench.device, bench.clock, environment=os.environ, probes=None)
    (probe,) = meter.probes
    result.body["machine"] |= {"board": board.name, "uuid": board.uuid, "driver": board.driver}
    result.body["probe"] = asdict(probe)
    result.note("probe", "done", bench.clock.now_s() - began_s)
    result.save()
    return meter


def run_parts(bench: Bench, board: Board, meter: NvmlMeter, budget: Budget, result: Result) -> None:
    window_s = parts.SPARE * meter.shortest_window_s + AROUND_WINDOW_S
    operators, cases = bench.operators(), bench.cases()
    lengths = budget.lengths(window_s, len(operators), len(cases))
    site = Site(bench=bench, board=board, meter=meter, lengths=lengths, poll_s=patience_s(meter))
    info = meter.info()
    result.body["meter"] = {
        "name": info.name,
        "source": info.source,
        "scale_low": info.scale_low,
        "scale_high": info.scale_high,
        "window_error": info.window_error,
        "shortest_window_s": meter.shortest_window_s,
    }
    result.body["lengths"] = asdict(lengths)
    for part in planned(site, window_s):
        if part.takes_s > budget.left_s():
            result.note(
                part.name, "dropped", why=f"{budget.left_s():.0f} s were left, it takes {part.takes_s:.0f}"
            )
        else:
            run_part(part, bench, result)
        result.save()


def patience_s(meter: NvmlMeter) -> float:
    """How often the long window may look at the counter: seldom, where looks disturb it."""
    (probe,) = meter.probes
    return probe.poll_s if probe.source == "counter" else probe.period_s / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """``measure`` is called if there is time; what it returns goes to ``key`` of the result."""

    name: str
    key: str
    takes_s: float
    measure: Callable[[], Mapping[str, object]]


def planned(site: Site, window_s: float) -> Iterator[Part]:
    """Operators and cases by turns: whatever is dropped for want of time, there is some of both."""
    bench, lengths = site.bench, site.lengths
    yield Part(name="idle", key="idle", takes_s=lengths.idle_s, measure=lambda: parts.idle(site))
    operators = [
        Part(
            name=name,
            key="operators",
            takes_s=lengths.operator_s(window_s),
            measure=lambda make=make, number=number: parts.operator(site, make(), SEED + number),
        )
        for number, (name, make) in enumerate(bench.operators().items())
    ]
    cases = [
        Part(
            name=name,
            key="cases",
            takes_s=lengths.case_s(window_s),
            measure=lambda make=make: parts.case(site, make()),
        )
        for name, make in bench.cases().items()
    ]
    overhead = Part(
        name="overhead",
        key="overhead",
        takes_s=lengths.overhead_s(window_s),
        measure=lambda: parts.overhead(site, bench.operators()[bench.shortest]()),
    )
    for pair in zip_longest([operators[0], overhead, *operators[1:]], cases):
        yield from (part for part in pair if part is not None)


def run_part(part: Part, bench: Bench, result: Result) -> None:
    """A part that fails takes nothing with it: the others run, and the result says why."""
    began_s = bench.clock.now_s()
    try:
        found = part.measure()
    except MagnetonError as problem:
        result.note(part.name, "failed", bench.clock.now_s() - began_s, why=f"{problem}; {problem.hint}")
        return
    except RuntimeError as problem:  # what PyTorch raises for all that goes wrong on a board
        result.note(part.name, "failed", bench.clock.now_s() - began_s, why=str(problem).partition("\n")[0])
        return
    result.note(part.name, "done", bench.clock.now_s() - began_s)
    if isinstance(result.body[part.key], list):
        result.body[part.key].append(found)
    else:
        result.body[part.key] = found
