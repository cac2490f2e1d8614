"""A step of a real model on a simulated board: each operator that runs gives the board its work as well.

The operators compute on the CPU, in no virtual time; the board works on them as its model says a board of
its kind would on tensors ``SCALE`` times as large, and waits for the next launch after each. The passes are
the recorder's own: dataflow, clean blocks, replay in loops, all on one virtual clock.

    BoardMode (every operator that runs, in a step or repeated, launches its work)
      ReplayMode of the recorder, in replay only
        the step of the model
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pynvml
import torch
from bench import QUEUE
from simulated_board import SHAPES, Board, Simulation, Work
from torch.utils._python_dispatch import TorchDispatchMode

from magneton.meters.devices import read_model
from magneton.meters.nvml import open_nvml
from magneton.models.model import resolve_model
from magneton.profile.cost import attribute
from magneton.profile.device import DeviceModel
from magneton.profile.model import Profile
from magneton.profile.origin import MeterInfo, Origin
from magneton.record.assemble import read_journal
from magneton.record.blocks import run_clean_block
from magneton.record.journal import Journal
from magneton.record.plan import RecordPlan, steps_for
from magneton.record.torch.calls import effect_of, inspect_call, tensors_in
from magneton.record.torch.counts import count_bytes, count_flops
from magneton.record.torch.tracer import TorchTracer
from magneton.record.windows import Windows
from magneton.systems.plain_torch import PlainTorchSystem
from magneton.systems.running import Setup
from magneton.workload import PREFILL, Workload

SCALE = 20_000.0  # of FLOPs and bytes: operators last up to some milliseconds
SHORTEST_S = 1e-4  # of them: the CPU computes each of the executions that fill a window
LAUNCH_S = 4e-6  # between two kernels of one stream
WAITING_W = 30.0  # above idle, meanwhile
ROUNDS, REPLAYS = 7, 5
WORKLOAD = Workload(phases=(PREFILL,), prompt_tokens=32, decode_steps=1)


class BoardMode(TorchDispatchMode):
    """Every operator that runs under it gives the board the work that it would be there."""

    def __init__(self, simulation: Simulation, device: DeviceModel, idle_w: float) -> None:
        super().__init__()
        self._simulation = simulation
        self._device = device
        self._idle_w = idle_w
        self._known: dict[object, Work | None] = {}
        self._queued = 0

    def synchronise(self) -> None:
        self._simulation.synchronize(0)
        self._queued = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        kind = (func, tuple(tensor.shape for tensor in tensors_in((args, kwargs, result))))
        if kind not in self._known:
            self._known[kind] = self._work(func, args, kwargs, result)
        work = self._known[kind]
        if work is not None:
            if self._queued == QUEUE:
                self.synchronise()
            self._queued += 1
            self._simulation.launch(0, work)
        return result

    def _work(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work | None:
        call, results = inspect_call(func, args, kwargs), tuple(tensors_in(result))
        known = {tensor.untyped_storage().data_ptr() for tensor in call.tensors}
        shown = all(tensor.untyped_storage().data_ptr() in known for tensor in results)
        effect = effect_of(call, results, all_shown=shown)
        flops = SCALE * count_flops(func, call, args, kwargs, result, effect)
        moved = SCALE * count_bytes(call, results, effect)
        if not flops and not moved:
            return None
        device = self._device
        (unit,) = (unit for unit in device.units if unit.name() == "vector float32")
        busy_s = max(
            flops / unit.flop_per_s.value,
            moved / device.memory_bytes_per_s.value,
            SHORTEST_S,
        )
        spent_j = flops * unit.j_per_flop.value + moved * device.memory_j_per_byte.value
        busy_w = min(self._idle_w + spent_j / busy_s, device.tdp_w.value)
        return Work(busy_w=busy_w, busy_s=busy_s, gap_s=LAUNCH_S, gap_w=self._idle_w + WAITING_W)


def step(shape: str, board: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What a step of the tiny Llama costs in the clean pass, and what its operators cost in replay."""
    own = {name: figure for name, figure in board.items() if name != "limit_w"}
    simulation = Simulation([Board(shape=SHAPES[shape], **own)], seed=seed)
    mode = BoardMode(simulation, read_model(shape.lower().replace("_", "")), SHAPES[shape].idle_w)
    pynvml.nvmlInit()
    meter = open_nvml(pynvml, "cuda:0", simulation, environment={}, probes=None)
    windows = Windows(meter, mode.synchronise, clock=simulation, sensor=meter, seed=seed)
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder))
        journal.write_origin(_origin(shape, meter.info()))
        with mode:
            _record(windows, simulation, journal, mode)
        journal.close()
        return _figures(read_journal(Path(folder)))


def _record(windows: Windows, simulation: Simulation, journal: Journal, mode: BoardMode) -> None:
    system, tracer = PlainTorchSystem(), TorchTracer(clock_s=simulation.now_s)
    folder = resolve_model("llama", "tiny").folder
    system.load(Setup(options={}, model_folder=folder, workload=WORKLOAD, device="cpu", threads=1))
    tracer.trace(system, PREFILL, journal)
    mode.synchronise()
    windows.rest("before", 3.0, now_s=simulation.now_s())
    plan = RecordPlan()
    began_s = simulation.now_s()
    system.rewind(PREFILL)
    system.step(PREFILL)
    mode.synchronise()
    step_s = simulation.now_s() - began_s
    steps = steps_for(plan.block_length_s(windows.shortest_window_s), step_s)
    for round in range(ROUNDS):
        reading, _ = run_clean_block(system, PREFILL, steps, round, windows, clock_s=simulation.now_s)
        journal.append(reading)
    for round in range(REPLAYS):
        tracer.replay(system, PREFILL, round, windows, journal, budget_s=1e9)


def _figures(profile: Profile) -> dict[str, Any]:
    found = attribute(profile, PREFILL)
    blocks = [block for block in profile.blocks if block.energy_j is not None]
    return {
        "operators": len(profile.operators),
        "keys": len({replay.key_id for replay in profile.replays}),
        "unread": len([op for op in found.unread if profile.operators[op].effect == "compute"]),
        "step_s": float(np.mean([block.duration_s / block.steps for block in blocks])),
        "steps": blocks[0].steps,
        "clean_j": found.total,
        "operators_j": found.attributed,
        "residual": found.unattributed / found.total,
        "doubts": [doubt.text for doubt in profile.doubts],
    }


def _origin(shape: str, meter: MeterInfo) -> Origin:
    return Origin(
        magneton_version="",
        system="torch",
        options={},
        versions={"torch": torch.__version__},
        model="llama-tiny",
        config_hash="",
        weights_hash="",
        workload=WORKLOAD,
        device=f"simulated {shape}",
        device_kind="cuda",
        driver="simulated",
        meter=replace(meter, source="simulated"),
        threads=1,
        grad_mode="no_grad",
        mode="eager",
        dataflow_mode="eager",
        flags={},
        recorded_at="",
        session="",
        replay_cache="warm",
    )
