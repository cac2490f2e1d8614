"""Replays on a simulated board: functions that a process with the simulated NVML runs for the benchmark."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import simulated_faults
from bench import Bench
from simulated_board import Work

from magneton.errors import MagnetonError
from magneton.quantity import Provenance
from magneton.statistics import estimate_ratio, summarise

ROUNDS = 7


def replay(
    shape: str,
    works: Sequence[Mapping[str, float]],
    board: Mapping[str, Any],
    seed: int,
    faults: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Figures of each operator with interval and truth; with two operators their ratio as well.

    ``faults`` have a ``kind`` (a class of ``simulated_faults``) and begin ``at_s`` after the probe.
    """
    bench = Bench(shape, [Work(**work) for work in works], seed=seed, board=board)
    meter = bench.meter()
    began_s = bench.simulation.now_s()
    bench.simulation.fault(*(_fault(each, began_s) for each in faults))
    rounds, rejected = bench.replayed(meter, ROUNDS)
    info = meter.info()
    gain = float(board.get("gain", 1.0))
    operators = [
        _figures([round_[k] for round_ in rounds], info.window_error, gain) for k in range(len(works))
    ]
    return {
        "operators": operators,
        "ratio": _ratio(rounds, info.window_error) if len(works) == 2 else None,
        "scale": [info.scale_low, info.scale_high],
        "source": info.source,
        "window_error": info.window_error,
        "took_s": bench.simulation.now_s() - began_s,
        "rejected": rejected,
    }


def _figures(rounds: Sequence[Any], window_error: float, gain: float) -> dict[str, Any]:
    """``covers``: truth, as the board's gain shows it, lies in the interval."""
    read = [each for each in rounds if each.energy_j is not None]
    gaps = [each.gap for each in rounds if each.energy_j is None]
    if not read:
        return {"n": 0, "gaps": gaps}
    figure = summarise([each.energy_j for each in read], Provenance.MEASURED, window_error=window_error)
    truth_j = sum(each.truth_j for each in read) / len(read)
    seen_j = truth_j * gain
    return {
        "n": len(read),
        "gaps": gaps,
        "value_j": figure.value,
        "low_j": figure.low,
        "high_j": figure.high,
        "truth_j": truth_j,
        "duration_s": read[0].duration_s,
        "error": figure.value / seen_j - 1,
        "half_width": (figure.high - figure.low) / 2 / figure.value,
        "covers": figure.low <= seen_j <= figure.high,
        "worst_window": max(abs(each.energy_j / (each.truth_j * gain) - 1) for each in read),
    }


def _ratio(rounds: Sequence[Sequence[Any]], window_error: float) -> dict[str, Any] | None:
    """Of the second operator over the first, from rounds in which both were read."""
    both = [(one, other) for one, other in rounds if one.energy_j is not None and other.energy_j is not None]
    if len(both) < 2:
        return None
    estimate = estimate_ratio(
        [one.energy_j for one, _ in both],
        [other.energy_j for _, other in both],
        paired=True,
        window_error=window_error,
    )
    if estimate is None:
        return None
    ratio = asdict(estimate.interval())
    truth = sum(other.truth_j for _, other in both) / sum(one.truth_j for one, _ in both)
    return {
        "value": ratio["value"],
        "low": ratio["low"],
        "high": ratio["high"],
        "n": ratio["n"],
        "truth": truth,
    }


def _fault(described: Mapping[str, Any], began_s: float) -> simulated_faults.Fault:
    known = dict(described)
    kind = getattr(simulated_faults, known.pop("kind"))
    for moment in ("at_s", "until_s"):
        if moment in known:
            known[moment] += began_s
    return kind(board=0, **known)


def outcome(
    shape: str,
    works: Sequence[Mapping[str, float]],
    board: Mapping[str, Any],
    seed: int,
    faults: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """What becomes of a replay, in words and figures; a refusal to measure is an outcome too."""
    try:
        replayed = replay(shape, works, board, seed, faults)
    except MagnetonError as error:
        return {"verdict": f"refused: {error}", "sound": True, "gaps": {}, "again": {}}
    (figure,) = replayed["operators"]
    gaps, again = Counter(figure["gaps"]), Counter(replayed["rejected"])
    if figure["n"] < 2:
        verdict = "one reading, no interval" if figure["n"] else "no figure"
        return {"verdict": verdict, "sound": all(gaps), "gaps": gaps, "again": again}
    held = "holds the truth" if figure["covers"] else "DOES NOT HOLD THE TRUTH"
    error = f"{figure['error']:+.2%} ± {figure['half_width']:.2%}"
    verdict = f"{figure['n']} of {ROUNDS} rounds read, error {error}, {held}"
    del figure["gaps"]
    return {
        "verdict": verdict,
        "sound": figure["covers"] and all(gaps),
        "gaps": gaps,
        "again": again,
        **figure,
    }
