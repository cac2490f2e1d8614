"""The real package zeus, asked for what it reads: nothing is silent, or counted twice, or left running.

Scenarios run in a process that has the simulated NVML, a RAPL of the test's own, and what else Zeus looks
for.
"""

import json
import os
import socketserver
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from powercap_tree import TurnedClock
from simulated_board import (
    H100,
    V100,
    Board,
    Host,
    Simulation,
    Work,
    build_library,
    compiler,
    driver_missing,
    environment,
    gpu_lost,
)
from zeus_on_a_tree import plant, refusal, spend, zeus_meter

from magneton.meters.sensors import SensorUnusable
from magneton.meters.zeus import ZeusMeter
from magneton.worker import boot
from magneton.worker.family import descendants

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")

ZONES = {
    "intel-rapl:0": "package-0",
    "intel-rapl:0/intel-rapl:0:0": "dram",
    "intel-rapl:0/intel-rapl:0:1": "core",
    "intel-rapl:1": "psys",
}


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host(environment(build_library())) as found:
        yield found


def no_boards(root: str, device: str, variables: dict[str, str]) -> dict[str, str]:
    Simulation([])
    return refusal(Path(root), device, variables)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_machine_without_sensors_is_refused(host: Host, tmp_path: Path, device: str) -> None:
    refused = host.call(no_boards, root=str(tmp_path), device=device, variables={})

    assert refused["kind"] == "SensorAbsent"
    assert ("finds no sensor" if device == "cpu" else "so there is no cuda:0") in refused["text"]


def test_a_daemon_that_does_not_answer_is_named(host: Host, tmp_path: Path) -> None:
    plant(tmp_path, ZONES)
    variables = {"ZEUSD_SOCK_PATH": str(tmp_path / "zeusd.sock"), "ZEUSD_TOKEN": "secret"}

    refused = host.call(no_boards, root=str(tmp_path), device="cpu", variables=variables)

    assert refused["kind"] == "SensorUnusable"
    assert "does zeusd (ZEUSD_SOCK_PATH=" in refused["hint"]
    assert "secret" not in str(refused)


def two_processors_a_window(root: str, as_worker: bool) -> dict[str, Any]:
    main: Any = sys.modules["__main__"]
    if as_worker:  # helpers import the main module again: let it be that of a worker
        main.__spec__, main.__file__ = None, boot.__file__
    Simulation([])
    clock, tree = TurnedClock(), Path(root)
    with zeus_meter(tree, "cpu", clock=clock) as meter:
        meter.begin()
        clock.sleep(3.0)
        for zone, energy_j in zip(ZONES, (30.0, 4.0, 20.0, 100.0), strict=True):
            spend(tree, zone, energy_j)
        read = meter.end()
        seen_wrap = _helper_sees_wrap(meter, tree, clock) if as_worker else None
        family = len(tuple(descendants(os.getpid())))
    return {
        "energy_j": read.energy_j,
        "gap": read.gap,
        "source": meter.info().source,
        "seen_wrap": seen_wrap,
        "family": family,
        "left": len(tuple(descendants(os.getpid()))),
    }


def _helper_sees_wrap(meter: ZeusMeter, tree: Path, clock: TurnedClock) -> bool:
    """A counter that falls is a wrap for as many looks as Zeus's helper needs to have started."""
    for _ in range(100):
        meter.begin()
        clock.sleep(3.0)
        spend(tree, "intel-rapl:0/intel-rapl:0:0", 1.0)
        spend(tree, "intel-rapl:0", 800.0)
        time.sleep(0.6)
        spend(tree, "intel-rapl:0", -800.0)
        time.sleep(0.6)
        if (meter.end().energy_j or 0) > 9e5:  # a range was added: microjoules of a whole counter
            return True
    return False


def test_packages_with_memory_are_read_and_no_process_is_left(host: Host, tmp_path: Path) -> None:
    plant(tmp_path, ZONES)

    found = host.call(two_processors_a_window, root=str(tmp_path), as_worker=False)

    assert found["energy_j"] == pytest.approx(34.0)  # neither core nor psys
    assert "processor 0 with its memory, read by Zeus;" in found["source"]
    assert found["family"] == 2 + found["left"]  # a helper for each counter; the tracker of resources stays
    assert found["left"] <= 1


def test_helpers_start_under_a_workers_main_module(tmp_path: Path) -> None:
    plant(tmp_path, ZONES)

    with Host(environment(build_library())) as host:
        found = host.call(two_processors_a_window, root=str(tmp_path), as_worker=True)

    assert found["seen_wrap"]
    assert found["family"] == 2 + found["left"]


def board_windows(root: str, lose: bool) -> list[dict[str, Any]]:
    simulation = Simulation([Board(shape=H100)], call_s=0.0)
    tree = Path(root)
    with zeus_meter(tree, "cuda:0", clock=simulation) as meter:
        if lose:
            simulation.fault(gpu_lost(0))
        reads: list[dict[str, Any]] = []
        for _ in range(2):
            meter.begin()
            before_j = simulation.true_energy_j(0)
            simulation.run(0, Work(busy_w=400.0, busy_s=4.0))
            true_j = simulation.true_energy_j(0) - before_j
            spend(tree, "intel-rapl:0", 50.0)
            spend(tree, "intel-rapl:0/intel-rapl:0:0", 2.0)
            read = meter.end()
            reads.append(
                {"energy_j": read.energy_j, "host_j": read.host_energy_j, "gap": read.gap, "true_j": true_j}
            )
    return reads


def test_a_simulated_board_is_read_with_its_host_beside_it(host: Host, tmp_path: Path) -> None:
    plant(tmp_path, ZONES)

    for read in host.call(board_windows, root=str(tmp_path), lose=False):
        assert read["energy_j"] == pytest.approx(read["true_j"], rel=0.05)
        assert read["host_j"] == pytest.approx(52.0)


def test_a_board_that_is_lost_leaves_gaps(host: Host, tmp_path: Path) -> None:
    plant(tmp_path, ZONES)

    for read in host.call(board_windows, root=str(tmp_path), lose=True):
        assert read["energy_j"] is None
        assert "lost" in read["gap"].lower()


def lost_while_opening(root: str) -> dict[str, Any]:
    simulation = Simulation([Board(shape=H100)])
    with zeus_meter(Path(root), "cuda:0"):
        calls = simulation.calls(0)
    simulation = Simulation([Board(shape=H100)])
    simulation.fault(gpu_lost(0, after_calls=calls - 1))  # the end of the first window, when helpers run
    return refusal(Path(root), "cuda:0") | {"family": len(tuple(descendants(os.getpid())))}


def test_a_board_that_is_lost_while_it_is_opened_leaves_no_helper(host: Host, tmp_path: Path) -> None:
    plant(tmp_path, ZONES)

    refused = host.call(lost_while_opening, root=str(tmp_path))

    assert refused["kind"] == "SensorUnusable"
    assert refused["family"] <= 1


def refused_board(root: str, case: str) -> dict[str, str]:
    shapes, device, variables = {
        "pascal": ([replace(V100, architecture=4)], "cuda:0", {}),
        "unlike": ([V100, H100], "cuda:1", {}),
        "uuid": ([H100], "cuda:0", {"CUDA_VISIBLE_DEVICES": "GPU-11111111"}),
        "beyond": ([H100], "cuda:0,cuda:3", {}),
    }[case]
    Simulation([Board(shape=shape) for shape in shapes])
    return refusal(Path(root), device, variables)


@pytest.mark.parametrize(
    ("case", "kind", "text"),
    [
        ("pascal", "SensorUnusable", "no energy counter that Zeus trusts"),
        ("unlike", "SensorUnusable", "boards differ"),
        ("uuid", "SensorUnusable", "invalid literal for int"),
        ("beyond", "SensorAbsent", "Zeus sees 1 boards"),
    ],
)
def test_boards_that_zeus_would_misread_are_refused(
    host: Host, tmp_path: Path, case: str, kind: str, text: str
) -> None:
    refused = host.call(refused_board, root=str(tmp_path), case=case)

    assert refused["kind"] == kind
    assert text in refused["text"]


def shadowed() -> dict[str, str]:
    try:
        ZeusMeter.open("", "cpu")
    except SensorUnusable as error:
        return {"text": str(error), "hint": error.hint}
    return {}


def test_a_package_that_shadows_the_bindings_is_named(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("class NVMLError(Exception): ...\n")
    variables = environment(build_library())
    variables["PYTHONPATH"] = os.pathsep.join((str(tmp_path), variables["PYTHONPATH"]))

    with Host(variables) as host:
        refused = host.call(shadowed)

    assert "shadows nvidia-ml-py" in refused["text"]
    assert "pip uninstall pynvml" in refused["hint"]


class Daemon(BaseHTTPRequestHandler):
    """What zeusd answers about processor 0, which has spent a second's worth more each time it is asked."""

    asked = 0

    def do_GET(self) -> None:
        where = self.path.partition("?")[0]
        type(self).asked += where.startswith("/cpu")
        spent = {"cpu_energy_uj": self.asked * 70_000_000, "dram_energy_uj": self.asked * 8_000_000}
        answers: dict[str, object] = {
            "/discover": {
                "gpus": [],
                "cpus": [{"id": 0, "dram_available": True}, {"id": 1, "dram_available": False}],
                "enabled_api_groups": ["cpu-read"],
                "auth_required": False,
            },
            "/cpu/get_cumulative_energy": {"0": spent},
        }
        body = json.dumps(answers[where]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "socket"

    def log_message(self, format: str, *args: Any) -> None:
        """A socket has no address to log."""


@contextmanager
def daemon(socket: str) -> Generator[None]:
    with socketserver.ThreadingUnixStreamServer(socket, Daemon) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield
        server.shutdown()
        thread.join()


def through_the_daemon(root: str, socket: str) -> dict[str, Any]:
    Simulation([])
    clock = TurnedClock()
    with (
        daemon(socket),
        zeus_meter(Path(root), "cpu", clock=clock, variables={"ZEUSD_SOCK_PATH": socket}) as meter,
    ):
        meter.begin()
        clock.sleep(3.0)
        read = meter.end()
    return {
        "energy_j": read.energy_j,
        "source": meter.info().source,
        "family": len(tuple(descendants(os.getpid()))),
    }


def test_processors_are_read_through_the_daemon_without_a_helper(host: Host, tmp_path: Path) -> None:
    plant(tmp_path, ZONES)

    found = host.call(through_the_daemon, root=str(tmp_path), socket=str(tmp_path / "z.sock"))

    assert found["energy_j"] == pytest.approx(
        78.0
    )  # psys, which the daemon offers as processor 1, is left out
    assert "read by Zeus through zeusd (ZEUSD_SOCK_PATH=" in found["source"]
    assert found["family"] <= 1


AMDSMI = '''
"""Two boards of AMD at 200 W. ``extra_j`` is what a test lets board 0 spend besides."""
import time

class AmdSmiException(Exception): ...
class AmdSmiLibraryException(AmdSmiException): ...
class AmdSmiInitFlags:
    INIT_AMD_GPUS = 2

extra_j = 0.0

def amdsmi_init(flags): ...
def amdsmi_shut_down(): ...
def amdsmi_get_processor_handles(): return [0, 1]
def amdsmi_get_gpu_enumeration_info(handle): return {"hip_id": handle}
def amdsmi_get_gpu_asic_info(handle): return {"market_name": "AMD Instinct MI250X"}
def amdsmi_get_power_info(handle):
    return {"current_socket_power": 0 if handle else 200, "average_socket_power": 0 if handle else 200}
def amdsmi_get_energy_count(handle):
    return {"energy_accumulator": time.monotonic() * 200e6 + extra_j * 1e6, "counter_resolution": 1.0}
'''


@pytest.fixture(scope="module")
def amd_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("amd")
    (folder / "amdsmi.py").write_text(AMDSMI)
    variables = environment(build_library(), faults=[driver_missing()])
    variables["PYTHONPATH"] = os.pathsep.join((str(folder), variables["PYTHONPATH"]))
    with Host(variables) as found:
        yield found


def amd_window(root: str) -> dict[str, Any]:
    amdsmi: Any = import_module("amdsmi")
    clock = TurnedClock()
    with zeus_meter(Path(root), "cuda:0", clock=clock) as meter:
        before_s = time.monotonic()
        meter.begin()
        clock.sleep(3.0)
        amdsmi.extra_j += 900.0
        read = meter.end()
        most_j = 900.0 + 200.0 * (time.monotonic() - before_s)
    return {"energy_j": read.energy_j, "most_j": most_j, "source": meter.info().source}


def test_a_board_of_amd_is_cuda_too(amd_host: Host, tmp_path: Path) -> None:
    found = amd_host.call(amd_window, root=str(tmp_path))

    assert 900.0 <= found["energy_j"] <= found["most_j"]
    assert "AMD Instinct MI250X, both dies (board 0)" in found["source"]


def amd_refusal(root: str, device: str, variables: dict[str, str]) -> dict[str, str]:
    return refusal(Path(root), device, variables)


@pytest.mark.parametrize(
    ("device", "variables", "text"),
    [
        ("cuda:1", {}, "no energy counter that Zeus trusts"),  # the second die
        ("cuda:0", {"ROCR_VISIBLE_DEVICES": "1"}, "ROCR_VISIBLE_DEVICES renumbers boards"),
        ("cuda:0", {"HIP_VISIBLE_DEVICES": "GPU-abc"}, "invalid literal for int"),
    ],
)
def test_boards_of_amd_that_zeus_would_misread_are_refused(
    amd_host: Host, tmp_path: Path, device: str, variables: dict[str, str], text: str
) -> None:
    refused = amd_host.call(amd_refusal, root=str(tmp_path), device=device, variables=variables)

    assert refused["kind"] == "SensorUnusable"
    assert text in refused["text"]


def chip_window(root: str, device: str) -> dict[str, Any]:
    jetson: Any = import_module("zeus.device.soc.jetson")

    class Chip(jetson.Jetson):
        """A Jetson whose figures come from the test and not from a process that polls its rails."""

        def __init__(self) -> None:
            self.measurement_states: dict[str, Any] = {}
            self.available_metrics: set[str] | None = None
            self.spent_mj = 1000.0

        def get_total_energy_consumption(self, timeout: float = 15.0) -> Any:
            return jetson.JetsonMeasurement(
                cpu_energy_mj=self.spent_mj / 4,
                gpu_energy_mj=self.spent_mj / 2,
                total_energy_mj=self.spent_mj,
            )

    Simulation([Board(shape=H100)])  # which a new Jetson's driver shows as well: the same chip
    clock, chip = TurnedClock(), Chip()
    with zeus_meter(Path(root), device, clock=clock, chip=chip) as meter:
        meter.begin()
        clock.sleep(3.0)
        chip.spent_mj += 60_000.0
        read = meter.end()
    return {"energy_j": read.energy_j, "host_j": read.host_energy_j, "source": meter.info().source}


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_chip_is_read_once_as_a_whole(host: Host, tmp_path: Path, device: str) -> None:
    found = host.call(chip_window, root=str(tmp_path), device=device)

    assert (found["energy_j"], found["host_j"]) == (pytest.approx(60.0), None)
    assert "sum over total_energy_mj" in found["source"]
