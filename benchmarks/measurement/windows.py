"""Windows as others read them, around the operators of a ``Bench``: what plain reads of the sensor give."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pynvml
from bench import Bench
from simulated_board import Work

LOOPS_S = {"one execution": 0.0, "a loop of 50 ms": 0.05, "a loop of 0.2 s": 0.2, "a loop of 2 s": 2.0}
POLL_S = 1e-3


def plain(
    shape: str, work: Mapping[str, float], board: Mapping[str, Any], repeats: int, seed: int
) -> dict[str, list[float]]:
    """Relative errors against truth times gain, of ``repeats`` windows of each kind, begun at any moment."""
    bench = Bench(shape, [Work(**work)], seed=seed, board=board)
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def counter_j() -> float:
        return pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) * 1e-3

    def power_w() -> float:
        return pynvml.nvmlDeviceGetPowerUsage(handle) * 1e-3

    errors: dict[str, list[float]] = {}
    for name, loop_s in LOOPS_S.items():
        by_counter = partial(_by_counter, bench, counter_j, loop_s)
        errors[f"counter, {name}"] = [_error(bench, by_counter, board) for _ in range(repeats)]
    by_power = partial(_by_power, bench, power_w, 0.2)
    errors["power reading polled, a loop of 0.2 s"] = [_error(bench, by_power, board) for _ in range(repeats)]
    return errors


def zeus(
    shape: str, work: Mapping[str, float], board: Mapping[str, Any], repeats: int, seed: int
) -> dict[str, list[float]]:
    """The same with windows of Zeus' own monitor."""
    bench = Bench(shape, [Work(**work)], seed=seed, board=board)
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[])

    def measured(loop_s: float) -> float:
        monitor.begin_window("loop", sync_execution=False)
        _loop(bench, loop_s)
        return monitor.end_window("loop", sync_execution=False).gpu_energy[0]

    return {
        f"Zeus, {name}": [_error(bench, partial(measured, loop_s), board) for _ in range(repeats)]
        for name, loop_s in LOOPS_S.items()
    }


def _error(bench: Bench, measured: Callable[[], float], board: Mapping[str, Any]) -> float:
    """Measured over true, less 1. Windows are some random part of a second apart."""
    bench.simulation.sleep(1.0 + _somewhere(bench))
    began_j = bench.simulation.true_energy_j(0)
    found_j = measured()
    truth_j = (bench.simulation.true_energy_j(0) - began_j) * board.get("gain", 1.0)
    return found_j / truth_j - 1


def _somewhere(bench: Bench) -> float:
    return (bench.simulation.now_s() * 7.0710678) % 1.0


def _loop(bench: Bench, loop_s: float) -> None:
    (work,) = bench.works
    bench.simulation.launch(0, work, max(1, round(loop_s / (work.busy_s + work.gap_s))))
    bench.synchronise()


def _by_counter(bench: Bench, counter_j: Callable[[], float], loop_s: float) -> float:
    began_j = counter_j()
    _loop(bench, loop_s)
    return counter_j() - began_j


def _by_power(bench: Bench, power_w: Callable[[], float], loop_s: float) -> float:
    """Mean of a thousand readings a second, times how long the loop took."""
    simulation, readings = bench.simulation, list[float]()

    def look() -> float:
        readings.append(power_w())
        return POLL_S

    began_s = simulation.now_s()
    watch = simulation.watch(look)
    _loop(bench, loop_s)
    watch.stop()
    return sum(readings) / len(readings) * (simulation.now_s() - began_s)
