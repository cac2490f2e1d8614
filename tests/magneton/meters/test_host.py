"""The host beside a device: told apart from it, never added to it, and not blamed for the meter's waiting."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from powercap_tree import PowercapTree, TurnedClock
from simulated_board import H100, Board, Simulation, Work, compiler, in_simulation

from magneton.errors import MagnetonError
from magneton.meters.board import load_nvml
from magneton.meters.counted import CountedMeter
from magneton.meters.devices import read_device
from magneton.meters.host import BesideHost, beside_host, host_info, open_host_meter
from magneton.meters.meter import Meter, Reading
from magneton.meters.modelled import ModelledMeter
from magneton.meters.nvml import open_nvml
from magneton.meters.powercap import summed_zones
from magneton.meters.rapl import RaplMeter
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.zeus import ZeusMeter
from magneton.meters.zeus_sensors import ZeusMeasurement, ZeusSensors
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

REST_W, SPINNING_W, BOARD_W = 20.0, 95.0, 300.0
EDGE_S = 0.15  # what the board's meter waits for an edge of its counter


@dataclass(slots=True)
class Machine:
    """A board at constant power, and a processor whose power and CPU time follow what it does."""

    root: Path
    clock: TurnedClock = field(default_factory=TurnedClock)
    busy_s: float = 0.0
    tree: PowercapTree = field(init=False)

    def __post_init__(self) -> None:
        self.tree = PowercapTree(self.root, self.clock)
        self.tree.add("intel-rapl:0", "package-0", power_w=REST_W)

    def sleep(self, duration_s: float) -> None:
        self.clock.sleep(duration_s)

    def spin(self, duration_s: float) -> None:
        package = self.tree.zones["intel-rapl:0"]
        package.draw(self.clock.now_s(), SPINNING_W)
        self.clock.sleep(duration_s)
        package.draw(self.clock.now_s(), REST_W)
        self.busy_s += duration_s

    def rapl(self) -> RaplMeter:
        return RaplMeter(summed_zones(self.tree.root, self.tree.read), clock=self.clock)

    def model(self) -> ModelledMeter:
        return ModelledMeter(
            read_device("cpu").core_power_w,
            cpu_clock_ns=lambda: round(self.busy_s * 1e9),
            wall_clock_ns=lambda: round(self.clock.now_s() * 1e9),
        )


@dataclass(slots=True)
class BoardMeter:
    """Like the meter of a board: it spins until the counter's edges, and its window lies between them."""

    machine: Machine
    shortest_window_s: float = 2.0
    gap: str = ""
    began_s: float = 0.0
    kept: list[PowerSample] = field(default_factory=list[PowerSample])
    closed: bool = False

    def info(self) -> MeterInfo:
        return MeterInfo(name="nvml", unit="J", provenance=Provenance.MEASURED)

    def begin(self, pieces: int = 1) -> None:
        self.machine.spin(EDGE_S)
        self.began_s = self.machine.clock.now_s()

    def end(self) -> Reading:
        duration_s = self.machine.clock.now_s() - self.began_s
        self.machine.spin(EDGE_S)
        energy_j = None if self.gap else BOARD_W * duration_s
        return Reading(duration_s=duration_s, energy_j=energy_j, gap=self.gap)

    def samples(self) -> tuple[PowerSample, ...]:
        return tuple(self.kept)

    def close(self) -> None:
        self.closed = True


def window(meter: Meter, work: Callable[[float], None], length_s: float = 3.0) -> Reading:
    meter.begin()
    work(length_s)
    return meter.end()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_host_that_spins_is_told_from_one_that_sleeps_by_its_sensor(machine: Machine) -> None:
    meter = BesideHost(BoardMeter(machine), machine.rapl())

    spun, slept = window(meter, machine.spin), window(meter, machine.sleep)

    assert spun.energy_j == pytest.approx(slept.energy_j) == pytest.approx(3 * BOARD_W)
    assert spun.host_energy_j == pytest.approx(3 * SPINNING_W, rel=2e-3)
    assert slept.host_energy_j == pytest.approx(3 * REST_W, rel=2e-3)


def test_a_host_that_spins_is_told_from_one_that_sleeps_by_the_model(machine: Machine) -> None:
    meter = BesideHost(BoardMeter(machine), machine.model())

    spun, slept = window(meter, machine.spin), window(meter, machine.sleep)

    assert spun.energy_j == pytest.approx(slept.energy_j)
    assert spun.host_energy_j == pytest.approx(3 * read_device("cpu").core_power_w.value)
    assert slept.host_energy_j == pytest.approx(0.0)  # the model's zero is a reading: no CPU time was spent


def test_the_device_s_gap_keeps_the_host_and_the_host_s_gap_keeps_the_device(machine: Machine) -> None:
    board = BoardMeter(machine)
    meter = BesideHost(board, machine.rapl())
    board.gap = "the board is lost"
    without_board = window(meter, machine.sleep)
    board.gap = ""
    machine.tree.take_away("intel-rapl:0")
    without_host = window(meter, machine.sleep)

    assert without_board.energy_j is None
    assert without_board.gap == "the board is lost"
    assert without_board.host_energy_j == pytest.approx(3 * REST_W, rel=2e-3)
    assert without_host.energy_j == pytest.approx(3 * BOARD_W)
    assert without_host.gap == ""
    assert without_host.host_energy_j is None
    assert "cannot be read" in without_host.host_gap
    assert without_board.host_gap == ""


def test_a_window_too_short_for_the_host_has_the_device_alone(machine: Machine) -> None:
    quick, slow_host = BoardMeter(machine, shortest_window_s=0.01), BoardMeter(machine, shortest_window_s=2.0)
    meter = BesideHost(quick, slow_host)

    read = window(meter, machine.sleep, 0.02)

    assert read.energy_j is not None
    assert read.host_energy_j is None
    assert "too short" in read.host_gap


def test_all_else_is_the_device_s(machine: Machine) -> None:
    board, host = BoardMeter(machine), machine.rapl()
    board.kept.append(PowerSample(phase="", round=0, time_s=1.0, power_w=300.0))
    meter = BesideHost(board, host)

    assert meter.info() == board.info()
    assert meter.shortest_window_s == board.shortest_window_s
    assert meter.samples() == tuple(board.kept)
    assert host_info(meter) == host.info()
    meter.close()
    assert board.closed


def test_work_on_the_processor_has_no_host_beside_it(machine: Machine) -> None:
    meter = machine.rapl()

    assert open_host_meter("cpu", machine.rapl) is None
    assert beside_host(meter, "cpu") is meter
    assert host_info(meter) is None


def test_the_host_is_read_where_it_may_be(machine: Machine) -> None:
    assert isinstance(open_host_meter("cuda:0", machine.rapl), RaplMeter)


@pytest.mark.parametrize("problem", [SensorAbsent, SensorUnusable])
def test_the_host_is_modelled_where_it_cannot_be_read(problem: type[MagnetonError]) -> None:
    def closed() -> Meter:
        raise problem("only root may read it", hint="ask root")

    host = open_host_meter("cuda:0,cuda:1", closed)

    assert isinstance(host, ModelledMeter)
    assert host.info().provenance is Provenance.MODELLED
    assert "CPU-seconds of the worker" in host.info().source


class NoWindows:
    """A monitor that is never asked."""

    def begin_window(self, key: str, sync_execution: bool = True, restart: bool = False) -> None:
        raise AssertionError(key)

    def end_window(self, key: str, sync_execution: bool = True) -> ZeusMeasurement:
        raise AssertionError(key)


def test_a_board_gets_its_host_beside_it(machine: Machine) -> None:
    def host_of(device: str) -> Meter | None:
        return open_host_meter(device, machine.rapl)

    alone = ZeusMeter(ZeusSensors(windows=NoWindows(), boards={0: "A"}))

    assert isinstance(beside_host(BoardMeter(machine), "cuda:0", host_of), BesideHost)
    assert isinstance(beside_host(alone, "cuda:0", host_of), BesideHost)


@pytest.mark.parametrize(
    "sensors",
    [
        ZeusSensors(windows=NoWindows(), boards={0: "A"}, packages=(0,)),
        ZeusSensors(windows=NoWindows(), boards={}, soc_fields=("total_energy_mj",)),
    ],
)
def test_a_meter_that_reads_the_host_gets_no_other(machine: Machine, sensors: ZeusSensors) -> None:
    meter = ZeusMeter(sensors)

    assert beside_host(meter, "cuda:0", lambda _: machine.rapl()) is meter


def test_what_measures_nothing_gets_no_host(machine: Machine) -> None:
    for meter in (CountedMeter(), machine.model()):
        assert beside_host(meter, "cuda:0", lambda _: machine.rapl()) is meter


def board_beside_processor(root: str, spins: bool) -> dict[str, float | None]:
    simulation = Simulation([Board(shape=H100)])
    tree = PowercapTree(Path(root), simulation)
    package = tree.add("intel-rapl:0", "package-0", power_w=REST_W)
    processor = RaplMeter(summed_zones(tree.root, tree.read), clock=simulation)
    board = open_nvml(load_nvml(), "cuda:0", simulation, environment={}, probes=None)
    meter = BesideHost(board, processor)
    meter.begin(600)
    package.draw(simulation.now_s(), SPINNING_W if spins else REST_W)
    simulation.run(0, Work(busy_w=400.0, busy_s=5e-3), times=600)
    package.draw(simulation.now_s(), REST_W)
    read = meter.end()
    meter.close()
    return {"board_j": read.energy_j, "host_j": read.host_energy_j, "duration_s": read.duration_s}


@pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")
def test_beside_a_simulated_board_spinning_shows_on_the_host_alone(tmp_path: Path) -> None:
    spun = in_simulation(board_beside_processor, root=str(tmp_path / "spun"), spins=True)
    slept = in_simulation(board_beside_processor, root=str(tmp_path / "slept"), spins=False)

    assert spun["board_j"] == pytest.approx(slept["board_j"], rel=5e-3) == pytest.approx(1200.0, rel=0.03)
    assert spun["host_j"] == pytest.approx(SPINNING_W * spun["duration_s"], rel=0.01)
    assert slept["host_j"] == pytest.approx(REST_W * slept["duration_s"], rel=0.01)
