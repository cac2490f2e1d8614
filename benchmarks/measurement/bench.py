"""One simulated board and our replay on it, in virtual time: runs in a process with the simulated NVML.

The operators are PyTorch operators whose kernels give the board work and compute nothing, so what is
measured goes through the very code that replays a model's operators. Between the replay and the meter
stands an ``Oracle``, which notes what the board truly spent in each window.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pynvml
import torch
from simulated_board import SHAPES, Board, Simulation, Work

from magneton.meters.meter import Meter, Reading
from magneton.meters.nvml import NvmlMeter, open_nvml
from magneton.profile.model import KeyId, PowerSample
from magneton.profile.origin import MeterInfo
from magneton.record.journal import Rejected
from magneton.record.plan import order
from magneton.record.torch.looping import LoopReader
from magneton.record.windows import Windows

QUEUE = 1024  # launches that wait for a board; the host waits with the next
LIBRARY = torch.library.Library("simulated", "DEF")
LIBRARY.define("work(Tensor token, int kind) -> Tensor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One operator in one round, per execution. ``truth_j`` is what the board truly spent on it."""

    energy_j: float | None
    gap: str
    truth_j: float
    duration_s: float


class Oracle:
    """A meter that reads what ``meter`` reads and remembers the truth of the last window."""

    def __init__(self, meter: Meter, simulation: Simulation) -> None:
        self._meter = meter
        self._simulation = simulation
        self.shortest_window_s = meter.shortest_window_s
        self._pieces = 1
        self._began_j = 0.0
        self.truth_j = 0.0  # per piece

    def info(self) -> MeterInfo:
        return self._meter.info()

    def begin(self, pieces: int = 1) -> None:
        self._pieces = pieces
        self._meter.begin(pieces)
        self._began_j = self._simulation.true_energy_j(0)

    def end(self) -> Reading:
        self.truth_j = (self._simulation.true_energy_j(0) - self._began_j) / self._pieces
        return self._meter.end()

    def samples(self) -> tuple[PowerSample, ...]:
        return self._meter.samples()

    def close(self) -> None:
        self._meter.close()


class Bench:
    """A board of one shape, and operators on it: ``works[k]`` is what operator ``k`` makes it do."""

    def __init__(self, shape: str, works: Sequence[Work], *, seed: int, board: Mapping[str, Any]) -> None:
        known = replace(SHAPES[shape], **{k: v for k, v in board.items() if k in SHAPES[shape].__slots__})
        own = {k: v for k, v in board.items() if k not in SHAPES[shape].__slots__}
        self.simulation = Simulation([Board(shape=known, **own)], seed=seed)
        self.works = tuple(works)
        self._seed = seed
        _AT_WORK[:] = [self]
        self._token = torch.zeros(1)
        self._queued = 0

    def synchronise(self) -> None:
        self.simulation.synchronize(0)
        self._queued = 0

    def meter(self) -> NvmlMeter:
        pynvml.nvmlInit()
        return open_nvml(pynvml, "cuda:0", self.simulation, environment={}, probes=None)

    def replayed(self, meter: NvmlMeter, rounds: int) -> tuple[list[list[Replayed]], list[str]]:
        """[rounds][operators], which take turns, backwards in every other round; why windows were spoilt."""
        oracle = Oracle(meter, self.simulation)
        windows = Windows(oracle, self.synchronise, clock=self.simulation, sensor=meter, seed=self._seed)
        windows.rest("before", 3.0, now_s=self.simulation.now_s())
        read = [self._round(windows, oracle, round) for round in range(rounds)]
        return read, [note.why for note in windows.take_notes() if isinstance(note, Rejected)]

    def _round(self, windows: Windows, oracle: Oracle, round: int) -> list[Replayed]:
        reader = LoopReader(windows, budget_s=1e9)
        truths: dict[int, float] = {}
        for kind in order(range(len(self.works)), round):
            reader.execute(KeyId(kind), torch.ops.simulated.work.default, (self._token, kind), {})
            truths[kind] = oracle.truth_j
        self.synchronise()
        read = {
            reading.key_id: Replayed(
                energy_j=reading.energy_j,
                gap=reading.gap,
                truth_j=truths[reading.key_id],
                duration_s=reading.duration_s,
            )
            for reading in reader.readings(round)
        }
        unread = {
            key_id: Replayed(energy_j=None, gap=reason, truth_j=0.0, duration_s=0.0)
            for key_id, reason in reader.skipped().items()
        }
        return [(read | unread)[KeyId(kind)] for kind in range(len(self.works))]

    def launch(self, kind: int) -> None:
        """Gives the board the work of one operator; the host waits where too much is queued."""
        if self._queued == QUEUE:
            self.synchronise()
        self._queued += 1
        self.simulation.launch(0, self.works[kind])


_AT_WORK: list[Bench] = []  # the one bench whose board the operator of ``LIBRARY`` works on


def _work(token: torch.Tensor, kind: int) -> torch.Tensor:
    _AT_WORK[0].launch(kind)
    return token.clone()


LIBRARY.impl("work", _work, "CPU")
