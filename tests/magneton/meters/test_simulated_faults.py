"""What goes wrong with simulated boards goes wrong as it says, when it says."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pynvml
import pytest
from simulated_board import (
    A100,
    EVERYTHING,
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
    SimulationError,
    Throttled,
    Work,
    build_library,
    compiler,
    driver_missing,
    environment,
    gpu_lost,
    in_simulation,
)
from simulated_reads import code_of, counter_j

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")

STILL = replace(A100, leakage_w_per_c=0.0, rise_s=0.0)
MATMUL = Work(busy_w=380.0, busy_s=1e-3)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host(environment(build_library())) as found:
        yield found


def opened(*faults: Fault) -> tuple[Simulation, Any]:
    simulation = Simulation([Board(shape=STILL)], faults=faults, call_s=0.0)
    pynvml.nvmlInit()
    return simulation, pynvml.nvmlDeviceGetHandleByIndex(0)


def each_second(simulation: Simulation, handle: Any, seconds: int) -> list[float]:
    figures: list[float] = []
    for _ in range(seconds):
        simulation.sleep(1.0)
        figures.append(counter_j(handle))
    return figures


COUNTER_FAULTS = {
    "reset": CounterReset(board=0, at_s=2.45),
    "rollback": CounterRollback(board=0, at_s=2.45, amount=1000.0),
    "frozen": CounterFrozen(board=0, at_s=1.95, until_s=3.5),
    "losing": CounterFrozen(board=0, at_s=1.95, until_s=3.45, loses=True),
}


def counter_under(fault: str) -> list[float]:
    simulation, handle = opened(COUNTER_FAULTS[fault])
    simulation.sleep(0.05)
    return each_second(simulation, handle, 4)


def test_a_counter_reset_starts_again_from_zero(host: Host) -> None:
    assert host.call(counter_under, fault="reset") == pytest.approx([5080, 5160, 40, 120])


def test_a_rollback_takes_back_what_it_says(host: Host) -> None:
    assert host.call(counter_under, fault="rollback") == pytest.approx([5080, 5160, 4240, 4320])


def test_a_frozen_counter_catches_up_unless_it_loses(host: Host) -> None:
    assert host.call(counter_under, fault="frozen") == pytest.approx([5080, 5152, 5152, 5320])
    assert host.call(counter_under, fault="losing") == pytest.approx([5080, 5152, 5152, 5200])


def failing_calls(target: str) -> list[int]:
    _, handle = opened(CallFails(board=0, target=target, code=Code.NOT_SUPPORTED))
    values = pynvml.nvmlDeviceGetFieldValues(handle, [186, 191])
    return [
        code_of(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle),
        code_of(pynvml.nvmlDeviceGetClockInfo, handle, 1),
        code_of(pynvml.nvmlDeviceGetComputeRunningProcesses, handle),
        *(value.nvmlReturn for value in values),
    ]


@pytest.mark.parametrize(
    ("target", "codes"),
    [
        ("nvmlDeviceGetTotalEnergyConsumption", [3, 0, 0, 0, 0]),
        ("nvmlDeviceGetClockInfo", [0, 3, 0, 0, 0]),
        ("nvmlDeviceGetComputeRunningProcesses", [0, 0, 3, 0, 0]),
        ("field:186", [0, 0, 0, 3, 0]),
        ("field:191", [0, 0, 0, 0, 3]),
    ],
)
def test_one_function_or_field_is_not_offered(host: Host, target: str, codes: list[int]) -> None:
    assert host.call(failing_calls, target=target) == codes


def lost_board() -> dict[str, Any]:
    simulation, handle = opened(gpu_lost(0, after_calls=3))
    after_calls = [code_of(counter_j, handle) for _ in range(5)]
    simulation, handle = opened()
    simulation.fault(gpu_lost(0, at_s=2.0))
    at_time: list[int] = []
    for _ in range(4):
        simulation.sleep(0.75)
        at_time.append(code_of(pynvml.nvmlDeviceGetPowerUsage, handle))
    return {
        "after_calls": after_calls,
        "at_time": at_time,
        "others": code_of(pynvml.nvmlDeviceGetCount),
        "handle": code_of(pynvml.nvmlDeviceGetHandleByIndex, 0),
    }


def test_a_board_is_lost_after_so_many_calls_or_at_a_time(host: Host) -> None:
    assert host.call(lost_board) == {
        "after_calls": [0, 0, 0, 15, 15],
        "at_time": [0, 0, 15, 15],
        "others": 0,
        "handle": 15,
    }


def forbidden() -> list[int]:
    _, handle = opened(
        CallFails(board=0, target=EVERYTHING, code=Code.NO_PERMISSION, after_calls=1, until_s=1.0)
    )
    return [code_of(counter_j, handle), code_of(counter_j, handle)]


def test_permission_may_be_missing(host: Host) -> None:
    assert host.call(forbidden) == [0, pynvml.NVML_ERROR_NO_PERMISSION]


def initialised() -> list[int]:
    return [code_of(pynvml.nvmlInit), code_of(pynvml.nvmlDeviceGetCount)]


def test_a_driver_may_be_missing_or_have_no_boards() -> None:
    assert in_simulation(initialised, boards=[Board(shape=A100)], faults=[driver_missing()])[0] == 9
    assert in_simulation(initialised) == [0, 0]


def throttled(at_s: float, until_s: float) -> dict[str, Any]:
    simulation, handle = opened(
        Throttled(
            board=0, at_s=at_s, until_s=until_s, clock_factor=0.5, power_factor=0.6, reasons=Reason.HW_THERMAL
        )
    )
    seen: list[list[float]] = []

    def look() -> float:
        reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
        seen.append([reasons, pynvml.nvmlDeviceGetClockInfo(handle, 1), simulation.true_power_w(0)])
        return 0.5

    watch = simulation.watch(look)
    simulation.run(0, replace(MATMUL, gap_s=1e-3), times=1000)
    watch.stop()
    return {"seen": seen, "now_s": simulation.now_s(), "true_j": simulation.true_energy_j(0)}


def test_throttled_work_takes_longer_and_draws_less(host: Host) -> None:
    seen = host.call(throttled, at_s=0.7505, until_s=1.3505)

    # 0.6 s of it hold 200 repetitions of 2 + 1 ms: 600 ms that would have been 400 ms
    assert seen["now_s"] == pytest.approx(2.2, abs=2e-3)
    assert seen["true_j"] == pytest.approx(
        800 * (0.38 + 0.08) + 200 * (2 * (80 + 0.6 * 300) + 80) * 1e-3, abs=0.7
    )
    reasons, clocks, _ = zip(*seen["seen"], strict=True)
    assert reasons == (1, 0, 0x40, 0, 0) and clocks == (1410, 1410, 705, 1410, 1410)


@pytest.mark.parametrize(
    ("at_s", "slowed_s"),
    [(0.0003, 0.42e-3), (0.0017, 0.12e-3), (0.5001, 0.42e-3), (1.99795, 0.37e-3), (1.99995, 0.0)],
)
def test_a_repetition_cut_anywhere_is_finished(host: Host, at_s: float, slowed_s: float) -> None:
    """Each throttling lasts 0.42 ms, of which some meets the busy half of a repetition of 2 ms."""
    seen = host.call(throttled, at_s=at_s, until_s=at_s + 0.42e-3)

    assert seen["now_s"] == pytest.approx(2.0 + slowed_s / 2, abs=1e-8)


def foreign() -> dict[str, Any]:
    simulation, handle = opened(ForeignProcess(board=0, at_s=1.0, until_s=2.0, power_w=120.0, pid=777))
    seen: list[list[int]] = []
    for _ in range(3):
        simulation.sleep(0.9)
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        seen.append([process.pid for process in processes if process.pid == 777])
    return {"seen": seen, "true_j": simulation.true_energy_j(0)}


def test_a_foreign_process_is_seen_and_draws_power(host: Host) -> None:
    seen = host.call(foreign)

    assert seen["seen"] == [[], [777], []] and seen["true_j"] == pytest.approx(2.7 * 80 + 120)


def warmer() -> list[float]:
    simulation = Simulation([Board(shape=A100)])
    before_w = simulation.true_power_w(0)
    simulation.fault(AmbientShift(board=0, amount=10.0))
    simulation.sleep(600.0)
    return [before_w, simulation.true_power_w(0), simulation.true_temperature_c(0)]


def test_warmer_air_makes_a_board_draw_more(host: Host) -> None:
    before_w, after_w, temperature_c = host.call(warmer)

    assert after_w - before_w == pytest.approx(10 * 0.25 / (1 - 0.09 * 0.25), rel=1e-3)
    assert temperature_c == pytest.approx(37 + 0.09 * after_w)


def triggered_by_calls() -> list[float]:
    simulation, handle = opened(Throttled(board=0, after_calls=5, clock_factor=0.5))
    simulation.launch(0, MATMUL, 1000)
    for _ in range(6):
        simulation.sleep(0.1)
        counter_j(handle)
    simulation.synchronize(0)
    late_s = simulation.now_s()
    simulation.clear_faults()
    simulation.run(0, MATMUL, 1000)
    return [late_s, simulation.now_s() - late_s]


def test_a_fault_that_waits_for_calls_changes_what_is_under_way(host: Host) -> None:
    """Five reads are fine, the sixth, at 0.6 s, throttles the rest."""
    assert host.call(triggered_by_calls) == pytest.approx([0.6 + 2 * 0.4, 1.0], abs=1e-6)


def nonsense() -> str:
    simulation, _ = opened()
    try:
        simulation.fault(CounterReset(board=3))
    except SimulationError as problem:
        return str(problem)
    return ""


def test_a_fault_of_no_board_is_refused(host: Host) -> None:
    assert "board 3 cannot be" in host.call(nonsense)
