"""Replay on simulated boards that know the truth: within one per cent of it, or with a reason.

The benchmark measurement_accuracy does the same two hundred times over, with fixed seeds.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulated_board import Host, build_library, compiler, environment

BENCH = Path(__file__).parents[4] / "benchmarks" / "measurement"
SPECIMEN = {"gain": 1.04, "noise_w": 2.0, "phase_s": 0.037, "jitter_s": 0.002, "limit_w": 500.0}
HUNDREDTH = 0.01

pytestmark = pytest.mark.skipif(compiler() is None, reason="gcc, which builds the simulated NVML, is missing")


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    found = environment(build_library())
    with Host(found | {"PYTHONPATH": os.pathsep.join((found["PYTHONPATH"], str(BENCH)))}) as host:
        yield host


def replayed(host: Host, function: str = "replay", **changes: Any) -> dict[str, Any]:
    known = {
        "shape": "A100",
        "works": [{"busy_w": 317, "busy_s": 1e-3}],
        "board": SPECIMEN,
        "seed": 3,
    }
    return host.call(f"replays:{function}", **(known | changes))


@pytest.mark.parametrize("counter", ["integral", "sampled"])
@pytest.mark.parametrize("shape", ["V100", "A100", "H100", "RTX_4090"])
@pytest.mark.parametrize(("busy_w", "busy_s"), [(180, 2e-4), (455, 5e-3)])
def test_the_truth_lies_in_the_interval_and_within_a_hundredth(
    host: Host, shape: str, counter: str, busy_w: float, busy_s: float
) -> None:
    (found,) = replayed(
        host,
        shape=shape,
        works=[{"busy_w": busy_w, "busy_s": busy_s}],
        board=SPECIMEN | {"counter": counter},
    )["operators"]

    assert found["n"] == 7
    assert abs(found["error"]) < HUNDREDTH
    assert found["covers"]
    assert found["half_width"] < 0.025


@pytest.mark.parametrize("gap", [0.05, -0.05])
def test_a_twentieth_at_equal_latency_is_seen_whichever_comes_first(host: Host, gap: float) -> None:
    works = [{"busy_w": w, "busy_s": 1e-3} for w in (300, 300 * (1 + gap))]

    ratio = replayed(host, works=works)["ratio"]

    assert ratio["low"] <= ratio["truth"] <= ratio["high"]
    assert not ratio["low"] <= 1 <= ratio["high"]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"kind": "Throttled"}, "held down: hw-thermal"),
        ({"kind": "ForeignProcess"}, "1 foreign process"),
        ({"kind": "CallFails", "target": "*", "code": 15}, "GPU is lost"),
    ],
)
def test_what_spoils_every_window_from_then_on_leaves_gaps_with_the_reason(
    host: Host, fault: dict[str, Any], reason: str
) -> None:
    found = replayed(host, "outcome", faults=[fault | {"at_s": 17.0}])

    assert found["sound"]
    assert 0 < found["n"] < 7
    assert found["n"] + sum(found["gaps"].values()) == 7
    assert all(reason in gap for gap in found["gaps"])


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "CounterReset", "at_s": 13.0},
        {"kind": "CounterRollback", "amount": 50.0, "at_s": 13.0},
        {"kind": "CounterFrozen", "loses": True, "at_s": 13.0, "until_s": 16.0},
        {"kind": "Throttled", "at_s": 13.0, "until_s": 15.0},
    ],
)
def test_a_window_that_was_spoilt_once_is_read_again(host: Host, fault: dict[str, Any]) -> None:
    found = replayed(host, "outcome", faults=[fault])

    assert (found["n"], found["gaps"]) == (7, {})
    assert sum(found["again"].values()) >= 1
    assert abs(found["error"]) < HUNDREDTH
    assert found["covers"]
