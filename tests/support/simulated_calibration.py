"""A calibration on a simulated board, in virtual time: ``in_simulation(calibrate_simulated, ...)``."""

import os
from pathlib import Path
from typing import Any

from planted_device import ENERGIES, FACTS, repetition_s
from simulated_board import H100, Board, Simulation, Work, gpu_lost

from magneton.calibrate.command import calibrate_into
from magneton.calibrate.workbench import CONSTANT, Benchmark, DeviceFacts
from magneton.errors import MagnetonError
from magneton.meters.board import load_nvml
from magneton.meters.nvml import open_nvml
from magneton.record.progress import NoProgress


class SimulatedWorkbench:
    """Board 0 spends what was planted, on top of what it draws at rest."""

    def __init__(self, simulation: Simulation, rest_w: float) -> None:
        self._simulation = simulation
        self._energies = {**ENERGIES, CONSTANT: rest_w}

    def facts(self) -> DeviceFacts:
        return FACTS

    def run(self, benchmark: Benchmark, repetitions: int) -> None:
        took_s = repetition_s(benchmark)
        if benchmark.work == "rest":
            self._simulation.sleep(repetitions * took_s)
            return
        spent_j = sum(self._energies[term] * count for term, count in benchmark.amounts.items())
        work = Work(busy_w=self._energies[CONSTANT] + spent_j / took_s, busy_s=took_s)
        self._simulation.launch(0, work, repetitions)

    def synchronise(self) -> None:
        self._simulation.synchronize(0)


def calibrate_simulated(
    output: str, *, gain: float = 1.0, counter: Any = "integral", lost_at_s: float | None = None
) -> dict[str, Any]:
    """Figures of the calibration, or the error it ended with."""
    simulation = Simulation([Board(shape=H100, gain=gain, counter=counter)], seed=1)
    meter = open_nvml(load_nvml(), "cuda:0", simulation, environment=os.environ, probes=None)
    if lost_at_s is not None:
        simulation.fault(gpu_lost(0, at_s=lost_at_s))
    workbench = SimulatedWorkbench(simulation, H100.idle_w)
    try:
        path, calibration = calibrate_into(
            Path(output), workbench, meter, simulation, budget_s=300, seed=0, progress=NoProgress()
        )
    except MagnetonError as error:
        return {"error": str(error), "hint": error.hint}
    finally:
        meter.close()
    figures = {row.name: (row.coefficient.low, row.coefficient.value, row.coefficient.high, row.origin)
               for row in calibration.rows}  # fmt: skip
    return {
        "path": str(path),
        "meter": calibration.meter.name,
        "figures": figures,
        "left out": [left.gap for left in calibration.left_out],
        "worst error": calibration.worst_error,
    }
