"""How far a hot loop is from what an operator costs where it happens: decode on the small Llama, CPU-seconds.

    python benchmarks/replay_in_place_against_loop.py MODEL_FOLDER

For each matrix product of a decode step: microseconds of CPU per execution read in place, in a loop, and
their ratio (medians of seven rounds of either kind, interleaved). MODEL_FOLDER is in Hugging Face format.
"""

import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from magneton.meters.meter import Reading
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance
from magneton.record.journal import Journal
from magneton.record.torch.tracer import TorchTracer
from magneton.record.windows import Windows
from magneton.systems.plain_torch import PlainTorchSystem
from magneton.systems.running import Setup
from magneton.workload import DECODE, PREFILL, Workload

ROUNDS = 7
LOOP = 1000  # rounds from here on are those of the loop


class CpuSeconds:
    """One watt for each busy core, so that joules are CPU-seconds."""

    def __init__(self, shortest_window_s: float) -> None:
        self.shortest_window_s = shortest_window_s
        self._began_s = 0.0

    def info(self) -> MeterInfo:
        return MeterInfo(name="cpu-seconds", unit="J", provenance=Provenance.MODELLED)

    def begin(self, pieces: int = 1) -> None:
        del pieces
        self._began_s = time.process_time()

    def end(self) -> Reading:
        spent_s = time.process_time() - self._began_s
        return Reading(duration_s=spent_s, energy_j=spent_s)

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held."""


def rows(folder: Path, table: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / f"{table}.jsonl").read_text().splitlines()]


def main(model_folder: Path) -> None:
    system, tracer = PlainTorchSystem(), TorchTracer()
    system.load(Setup(options={}, model_folder=model_folder, workload=Workload(), device="cpu", threads=1))
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder)) as journal:
        for phase in (PREFILL, DECODE):
            tracer.trace(system, phase, journal)
        for round in range(ROUNDS):
            tracer.replay(system, DECODE, round, Windows(CpuSeconds(0.0)), journal, 600.0)
            tracer.replay(system, DECODE, LOOP + round, Windows(CpuSeconds(0.02)), journal, 600.0)
        operators = rows(journal.folder, "operators")
        readings = rows(journal.folder, "replays")
    names = {row["key_id"]: str(row["name"]) for row in operators if row["phase"] == DECODE}
    seen: defaultdict[object, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for row in readings:
        cost_us = float(str(row["duration_s"])) * 1e6
        seen[row["key_id"]][int(str(row["round"])) >= LOOP].append(cost_us)
    for key_id, (in_place, looped) in seen.items():
        if looped and names[key_id] in ("aten.mm.default", "aten.addmm.default"):
            here, hot = median(in_place), median(looped)
            print(f"{names[key_id]:<22} in place {here:8.1f} us  loop {hot:8.1f} us  ratio {here / hot:.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
