"""Boards that several processes share in real time, and Zeus over a simulated board."""

import time
import warnings
from pathlib import Path
from typing import Any

import pynvml
import pytest
from simulated_board import (
    A100,
    H100,
    RTX_4090,
    Board,
    Host,
    Simulation,
    Work,
    build_library,
    compiler,
    environment,
    in_simulation,
)
from simulated_reads import counter_j

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")

MATMUL = Work(busy_w=380.0, busy_s=1e-3)


def worked(times: int) -> float:
    """In one process: work, and when the board will have done it."""
    simulation = Simulation.joined()
    simulation.launch(0, MATMUL, times)
    before_s = simulation.now_s()
    simulation.synchronize(0)
    return simulation.now_s() - before_s


def seen() -> list[float]:
    """In another: what NVML says."""
    simulation = Simulation.joined()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    now_s, energy_j = simulation.now_s(), counter_j(handle)
    pynvml.nvmlShutdown()
    return [now_s, energy_j, simulation.true_energy_j(0, at_s=now_s)]


def test_processes_that_name_one_state_share_its_boards(tmp_path: Path) -> None:
    board = Board(shape=A100)
    variables = environment(build_library(), [board], real_time=True, state_file=tmp_path / "boards")
    with Host(variables) as worker, Host(variables) as watcher:
        before_s, before_j, true_before_j = watcher.call(seen)
        assert worker.call(worked, times=300) >= 0.3
        time.sleep(0.15)  # a period and a lag
        after_s, after_j, true_after_j = watcher.call(seen)

    spent_j = true_after_j - true_before_j
    assert spent_j == pytest.approx(0.3 * 380 + (after_s - before_s - 0.3) * 82, rel=0.03)
    assert 0.5 * spent_j < after_j - before_j < 2 * spent_j


def abandoned() -> None:
    import ctypes
    import os

    library: Any = ctypes.CDLL("libnvidia-ml.so.1")
    library.sim_abandon_lock()
    os._exit(3)


def test_a_process_that_dies_with_the_lock_does_not_stop_the_others(tmp_path: Path) -> None:
    variables = environment(
        build_library(), [Board(shape=A100)], real_time=True, state_file=tmp_path / "boards"
    )
    with Host(variables) as watcher:
        watcher.call(seen)
        with pytest.raises(AssertionError, match="ended with 3"), Host(variables) as other:
            other.call(abandoned)
        assert watcher.call(seen)[1] >= 5000.0 - 10


def zeus_windows(shape_names: list[str], lengths_s: list[float]) -> list[list[float]]:
    """Per window: its length, what Zeus says, and the truth."""
    from simulated_board import SHAPES
    from zeus.monitor import ZeusMonitor

    warnings.simplefilter("ignore")  # that windows of 20 ms read zero
    simulation = Simulation([Board(shape=SHAPES[name]) for name in shape_names])
    monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[])
    rows: list[list[float]] = []
    for length_s in lengths_s:
        simulation.sleep(2.0 - simulation.now_s() % 1.0 + 0.02)
        true_j = simulation.true_energy_j(0)
        monitor.begin_window("window", sync_execution=False)
        simulation.run(0, MATMUL, round(length_s / MATMUL.busy_s))
        measured = monitor.end_window("window", sync_execution=False)
        rows.append([length_s, measured.gpu_energy[0], simulation.true_energy_j(0) - true_j])
    return rows


def test_zeus_windows_err_as_published() -> None:
    rows = in_simulation(zeus_windows, shape_names=["A100", "H100"], lengths_s=[0.02, 0.05, 0.55, 2.05])

    short, shorter, half, long = rows
    assert short[1] == shorter[1] == 0.0 and shorter[2] > 15
    assert half[1] == pytest.approx(half[2], rel=0.25) and abs(half[1] / half[2] - 1) > 0.05
    assert long[1] == pytest.approx(long[2], rel=0.06) and abs(long[1] / long[2] - 1) > 0.01


def zeus_in_real_time() -> list[float]:
    from zeus.monitor import ZeusMonitor

    simulation = Simulation.joined()
    monitor = ZeusMonitor(cpu_indices=[])
    simulation.launch(0, MATMUL, 100_000)
    time.sleep(0.12)
    true_j = [simulation.true_energy_j(board) for board in range(2)]
    monitor.begin_window("window", sync_execution=False)
    time.sleep(0.5)
    measured = monitor.end_window("window", sync_execution=False)
    spent_j = sum(simulation.true_energy_j(board) - true_j[board] for board in range(2))
    return [len(monitor.gpu_indices), measured.total_energy, spent_j]


def test_zeus_measures_a_simulated_board_in_real_time() -> None:
    boards = [Board(shape=H100), Board(shape=RTX_4090, phase_s=0.03)]

    count, seen_j, spent_j = in_simulation(zeus_in_real_time, boards=boards, real_time=True)

    assert count == 2 and spent_j >= 0.5 * (380 + 55)
    assert 0.5 * spent_j < seen_j < 1.5 * spent_j
