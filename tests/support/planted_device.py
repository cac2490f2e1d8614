"""A device that follows the model exactly, or but for noise: what a calibration should find is known."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from magneton.calibrate.workbench import (
    CACHE,
    CONSTANT,
    LAUNCH,
    MEMORY,
    REST_S,
    ZEROS,
    Benchmark,
    DeviceFacts,
    energy_term,
)
from magneton.meters.clock import Watch
from magneton.meters.meter import Reading, State
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

FACTS = DeviceFacts(
    name="Planted H100",
    kind="cuda",
    driver="1.2.3",
    software="none",
    cache_bytes=50e6,
    free_bytes=80 * 2**30,
    matrix=("tf32", "bfloat16", "float16"),
    chains=True,
)
# An H100, roughly: J per FLOP, per byte and per launch, and W.
ENERGIES: Mapping[str, float] = {
    CONSTANT: 110.0,
    LAUNCH: 20e-6,
    MEMORY: 144e-12,
    CACHE: 51e-12,
    MEMORY + ZEROS: 90e-12,
    CACHE + ZEROS: 35e-12,
    energy_term("vector", "float32"): 8e-12,
    energy_term("matrix", "tf32"): 1.0e-12,
    energy_term("matrix", "bfloat16"): 0.52e-12,
    energy_term("matrix", "float16"): 0.5e-12,
    energy_term("matrix", "float16") + ZEROS: 0.3e-12,
}
# What one of each takes where nothing else is slower.
DURATIONS: Mapping[str, float] = {
    LAUNCH: 4e-6,
    MEMORY: 1 / 3.0e12,
    CACHE: 1 / 5.5e12,
    energy_term("vector", "float32"): 1 / 50e12,
    energy_term("matrix", "tf32"): 1 / 400e12,
    energy_term("matrix", "bfloat16"): 1 / 700e12,
    energy_term("matrix", "float16"): 1 / 650e12,
}


class SimulatedTime:
    """A clock that goes on only when somebody waits or works."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def now_s(self) -> float:
        return self.time_s

    def sleep(self, duration_s: float) -> None:
        self.time_s += duration_s

    def watch(self, look: Callable[[], float]) -> Watch:
        raise AssertionError("nothing here looks meanwhile")


@dataclass(kw_only=True)
class PlantedDevice:
    """A workbench of known coefficients. ``energy_j`` is all that it has spent."""

    clock: SimulatedTime = field(default_factory=SimulatedTime)
    energies: Mapping[str, float] = field(default_factory=lambda: ENERGIES)
    known: DeviceFacts = FACTS
    besides_w: Mapping[str, float] = field(
        default_factory=dict[str, float]
    )  # by benchmark: what no model has
    energy_j: float = 0.0
    began_s: float = 0.0

    def facts(self) -> DeviceFacts:
        return self.known

    def run(self, benchmark: Benchmark, repetitions: int) -> None:
        took_s = repetitions * repetition_s(benchmark)
        self.clock.sleep(took_s)
        spent_j = sum(self.energies[term] * count for term, count in benchmark.amounts.items()) * repetitions
        self.energy_j += spent_j + self.besides_w.get(benchmark.name, 0.0) * took_s

    def synchronise(self) -> None:
        """Work is over when it was started."""

    def total_j(self) -> float:
        return self.energy_j + self.energies[CONSTANT] * self.clock.now_s()


def repetition_s(benchmark: Benchmark) -> float:
    if benchmark.work == "rest":
        return REST_S
    amounts = {term.removesuffix(ZEROS): count for term, count in benchmark.amounts.items()}
    return max(DURATIONS[term] * count for term, count in amounts.items())


@dataclass(kw_only=True)
class PlantedMeter:
    """Reads a planted device, off by a gain and by noise of its own in every window.

    ``gaps`` says how many of the next windows of work give no reading; ``breaks`` is raised by the window of
    that number.
    """

    device: PlantedDevice
    noise: float = 0.0
    gain: float = 1.0
    scale: tuple[float, float] = (1.0, 1.0)
    seed: int = 0
    gap: Callable[[int], str] = lambda window: ""
    breaks: Mapping[int, BaseException] = field(default_factory=dict[int, BaseException])
    provenance: Provenance = Provenance.MEASURED
    throttle: tuple[str, ...] = ()
    foreign: int = 0
    shortest_window_s: float = 2.0
    windows: int = 0
    closed: bool = False

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        self._began = (0.0, 0.0)

    def info(self) -> MeterInfo:
        return MeterInfo(
            name="planted",
            unit="J",
            provenance=self.provenance,
            scale_low=self.scale[0],
            scale_high=self.scale[1],
            source="what was planted",
        )

    def begin(self, pieces: int = 1) -> None:
        self.device.clock.sleep(0.2)
        self._began = (self.device.clock.now_s(), self.device.total_j())

    def end(self) -> Reading:
        self.windows += 1
        if self.windows in self.breaks:
            raise self.breaks[self.windows]
        began_s, began_j = self._began
        duration_s = self.device.clock.now_s() - began_s
        gap = self.gap(self.windows)
        energy_j = (self.device.total_j() - began_j) * self.gain * (1 + self._dice.gauss(0, self.noise))
        return Reading(
            duration_s=duration_s,
            energy_j=None if gap else energy_j,
            gap=gap,
            after=State(throttle=self.throttle, foreign=self.foreign),
        )

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        self.closed = True
