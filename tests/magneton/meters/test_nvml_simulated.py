"""The meter on simulated boards, through the real bindings: what it says against what was truly spent.

The functions that begin with ``of_`` run in a process that has the simulated library.
"""

from collections.abc import Iterator
from typing import Any

import pynvml
import pytest
from simulated_board import (
    SHAPES,
    AmbientShift,
    Board,
    CallFails,
    Code,
    CounterFrozen,
    CounterReset,
    CounterRollback,
    Fault,
    ForeignProcess,
    Host,
    Reason,
    Simulation,
    Throttled,
    Work,
    compiler,
    gpu_lost,
)

from magneton.errors import MagnetonError
from magneton.meters.meter import Reading
from magneton.meters.nvml import open_nvml

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs gcc")

WINDOW_S = 2.5
PIECES = {"many": 2000, "few": 1}
FAULTS: dict[str, tuple[Fault, ...]] = {
    "reset": (CounterReset(at_s=21.0),),
    "rollback": (CounterRollback(at_s=21.0, amount=200.0),),
    "small rollback": (CounterRollback(at_s=21.0, amount=22.0),),
    "freeze that loses": (CounterFrozen(at_s=21.0, until_s=21.6, loses=True),),
    "freeze for good": (CounterFrozen(at_s=20.5),),
    "hw thermal": (Throttled(at_s=21.0, until_s=21.5),),
    "power brake": (Throttled(at_s=21.0, until_s=21.5, reasons=Reason.HW_SLOWDOWN | Reason.POWER_BRAKE),),
    "foreign": (ForeignProcess(at_s=21.0),),
    "foreign that leaves": (ForeignProcess(at_s=20.5, until_s=22.2),),
    "lost": (gpu_lost(0, at_s=21.0),),
    "permission": (
        CallFails(target="nvmlDeviceGetTotalEnergyConsumption", code=Code.NO_PERMISSION, at_s=21.0),
    ),
}
REASONS = {
    "reset": "it was reset",
    "rollback": "it was reset",
    "small rollback": "lost energy",
    "freeze that loses": "stood still",
    "freeze for good": "stood still",
    "hw thermal": "hw-thermal",
    "power brake": "hw-power-brake",
    "foreign": "1 foreign process",
    "foreign that leaves": "1 foreign process",
    "lost": "GPU is lost",
    "permission": "no permission",
}


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host() as process:
        yield process


def told(reading: Reading, true_j: float) -> dict[str, Any]:
    """What travels back: the relative error, or why there is none."""
    error = None if reading.energy_j is None else reading.energy_j / true_j - 1
    return {"error": error, "gap": reading.gap, "agreement": reading.agreement}


def measured(simulation: Simulation, meter: Any, *, busy_w: float, pieces: int) -> dict[str, Any]:
    """One window of work, and what was spent in it without the time in which power rises and falls."""
    work = Work(busy_w=busy_w, busy_s=WINDOW_S / 2000)
    meter.begin(pieces)
    began_s, began_j = simulation.now_s(), simulation.true_energy_j(0)
    simulation.run(0, work, times=2000)
    true_j, duration_s = simulation.true_energy_j(0) - began_j, simulation.now_s() - began_s
    result = told(meter.end(), true_j)
    return result | {"stretched": duration_s / WINDOW_S}


def of_sound_boards(shape: str, counter: Any, few: bool, seed: int) -> list[dict[str, Any]]:
    board = Board(
        shape=SHAPES[shape], counter=counter, gain=1.03, noise_w=1.5, phase_s=0.013 * seed, jitter_s=5e-4
    )
    simulation = Simulation([board], seed=seed)
    meter = open_nvml(pynvml, "cuda:0", simulation, environment={}, probes=None)
    pieces = PIECES["few" if few else "many"]
    found = [
        measured(simulation, meter, busy_w=busy_w, pieces=pieces)
        for busy_w in (266.0, 317.0, 290.0, 317.0, 266.0)
    ]
    meter.close()
    return found


def of_faults(name: str, few: bool) -> list[dict[str, Any]]:
    """A sound window, one in which something goes wrong at 21 s, and one after it."""
    simulation = Simulation([Board(shape=SHAPES["A100"], noise_w=1.0)], faults=FAULTS[name])
    meter = open_nvml(pynvml, "cuda:0", simulation, environment={}, probes=None)
    pieces = PIECES["few" if few else "many"]
    found = [measured(simulation, meter, busy_w=300.0, pieces=pieces)]
    simulation.sleep(20.3 - simulation.now_s())
    found.append(measured(simulation, meter, busy_w=300.0, pieces=pieces))
    simulation.sleep(0.3)
    found.append(measured(simulation, meter, busy_w=300.0, pieces=pieces))
    return found


def of_stale_counters(hold_s: float, loses: bool, few: bool) -> dict[str, Any]:
    board = Board(shape=SHAPES["A100"], noise_w=1.0, hold_s=hold_s, hold_loses=loses)
    simulation = Simulation([board])
    meter = open_nvml(pynvml, "cuda:0", simulation, environment={}, probes=None)
    (probe,) = meter.probes
    pieces = PIECES["few" if few else "many"]
    windows = [measured(simulation, meter, busy_w=300.0, pieces=pieces) for _ in range(4)]
    return {"windows": windows, "source": probe.source, "stale": probe.stale}


def of_a_freeze_that_catches_up(at_s: float) -> dict[str, Any]:
    fault = CounterFrozen(at_s=at_s, until_s=at_s + 0.45)
    simulation = Simulation([Board(shape=SHAPES["A100"], noise_w=1.0)], faults=[fault])
    meter = open_nvml(pynvml, "cuda:0", simulation, environment={}, probes=None)
    simulation.sleep(20.0 - simulation.now_s())
    return measured(simulation, meter, busy_w=300.0, pieces=2000)


def of_drift() -> list[dict[str, Any]]:
    faults = [AmbientShift(at_s=10.0, amount=22.0)]
    simulation = Simulation([Board(shape=SHAPES["H100"], noise_w=1.0)], faults=faults)
    meter = open_nvml(pynvml, "cuda:0", simulation, environment={}, probes=None)
    return [measured(simulation, meter, busy_w=600.0, pieces=2000) for _ in range(20)]


def of_two_boards() -> dict[str, Any]:
    simulation = Simulation([Board(shape=SHAPES["A100"]), Board(shape=SHAPES["A100"], phase_s=0.05)])
    meter = open_nvml(pynvml, "cuda:0,cuda:1", simulation, environment={}, probes=None)
    meter.begin(1000)
    before_j = simulation.true_energy_j(0) + simulation.true_energy_j(1)
    for board, busy_w in enumerate((300.0, 200.0)):
        simulation.launch(board, Work(busy_w=busy_w, busy_s=2e-3), times=1000)
    for board in (0, 1):
        simulation.synchronize(board)
    true_j = simulation.true_energy_j(0) + simulation.true_energy_j(1) - before_j
    return told(meter.end(), true_j)


def of_refusals(shape: str, mig_slices: int, visible: str | None) -> list[str]:
    board = Board(shape=SHAPES[shape], uuid="GPU-aaaaaaaa-0000-0000-0000-000000000000", mig_slices=mig_slices)
    simulation = Simulation([board])
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    try:
        open_nvml(pynvml, "cuda:0", simulation, environment=environment, probes=None)
    except MagnetonError as refused:
        return [type(refused).__name__, str(refused), refused.hint]
    return []


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("counter", ["integral", "sampled"])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_windows_of_sound_boards_are_true_but_for_their_gain(
    host: Host, shape: str, counter: str, few: bool
) -> None:
    for seed in range(3):
        for window in host.call(of_sound_boards, shape=shape, counter=counter, few=few, seed=seed):
            assert window["gap"] == ""
            assert window["error"] == pytest.approx(0.03, abs=0.008)
            assert window["agreement"] == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("name", list(FAULTS))
def test_what_goes_wrong_rejects_its_window_and_says_so(host: Host, name: str, few: bool) -> None:
    before, during, after = host.call(of_faults, name=name, few=few)

    assert abs(before["error"]) < 0.004
    assert during["error"] is None
    assert REASONS[name] in during["gap"]
    if name in ("lost", "permission", "freeze for good", "foreign"):
        assert after["error"] is None
        assert REASONS[name] in after["gap"]
    else:
        assert abs(after["error"]) < 0.004


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(
    ("hold_s", "loses", "source"),
    [(0.003, False, "counter"), (0.003, True, "counter"), (0.05, False, "power"), (0.3, True, "power")],
)
def test_counters_that_must_not_be_read_often_are_not(
    host: Host, hold_s: float, loses: bool, source: str, few: bool
) -> None:
    found = host.call(of_stale_counters, hold_s=hold_s, loses=loses, few=few)

    assert (found["source"], found["stale"]) == (source, True)
    errors = [window["error"] for window in found["windows"]]
    assert sum(errors) / 4 == pytest.approx(0.0, abs=0.015)
    assert max(map(abs, errors)) < 0.04


@pytest.mark.parametrize("at_s", [19.9, 20.3, 21.0, 22.1, 22.4])
def test_a_counter_that_catches_up_has_lost_nothing(host: Host, at_s: float) -> None:
    found = host.call(of_a_freeze_that_catches_up, at_s=at_s)

    assert (found["gap"], abs(found["error"]) < 0.004) == ("", True)


def test_windows_follow_what_drifts(host: Host) -> None:
    assert max(abs(window["error"]) for window in host.call(of_drift)) < 0.004


def test_several_boards_are_summed(host: Host) -> None:
    assert abs(host.call(of_two_boards)["error"]) < 0.004


@pytest.mark.parametrize("visible", [None, "MIG-aaaaaaaa-0000-0000-0000-000000000001", "GPU-aaaaaaaa"])
def test_slices_are_refused(host: Host, visible: str | None) -> None:
    kind, message, hint = host.call(of_refusals, shape="A100", mig_slices=2, visible=visible)

    assert (kind, "MIG" in message, bool(hint)) == ("SensorUnusable", True, True)
