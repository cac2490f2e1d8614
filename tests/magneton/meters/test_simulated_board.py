"""The simulated board as the real ``pynvml`` sees it: figures, clock, work, noise, MIG."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pynvml
import pytest
from simulated_board import (
    A100,
    H100,
    SHAPES,
    V100,
    Board,
    Host,
    Simulation,
    SimulationError,
    Work,
    build_library,
    compiler,
    environment,
)
from simulated_reads import STILL, code_of, counter_j, field, opened
from simulated_scenarios import ScenarioFailed, in_simulation

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")

MATMUL = Work(busy_w=400.0, busy_s=1e-3)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host(environment(build_library())) as found:
        yield found


def every_figure(shape: str) -> dict[str, Any]:
    simulation, (handle,) = opened(Board(shape=SHAPES[shape]))
    simulation.launch(0, MATMUL, 5000)
    simulation.sleep(2.0)
    memory: Any = pynvml.nvmlDeviceGetMemoryInfo(handle)
    (own,) = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return {
        "count": pynvml.nvmlDeviceGetCount(),
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "nvml": pynvml.nvmlSystemGetNVMLVersion(),
        "name": pynvml.nvmlDeviceGetName(handle),
        "uuid": pynvml.nvmlDeviceGetUUID(handle),
        "index": pynvml.nvmlDeviceGetIndex(handle),
        "bus": pynvml.nvmlDeviceGetPciInfo(handle).busId,
        "architecture": pynvml.nvmlDeviceGetArchitecture(handle),
        "power_mw": pynvml.nvmlDeviceGetPowerUsage(handle),
        "temperature_c": pynvml.nvmlDeviceGetTemperature(handle, 0),
        "temperature_v_c": pynvml.nvmlDeviceGetTemperatureV(handle, 0),
        "sm_mhz": pynvml.nvmlDeviceGetClockInfo(handle, 1),
        "memory_mhz": pynvml.nvmlDeviceGetClockInfo(handle, 2),
        "most_mhz": pynvml.nvmlDeviceGetMaxClockInfo(handle, 1),
        "reasons": pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        "old_reasons": pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        "utilization": pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
        "own_memory": own.usedGpuMemory,
        "limits_mw": [
            pynvml.nvmlDeviceGetEnforcedPowerLimit(handle),
            pynvml.nvmlDeviceGetPowerManagementLimit(handle),
            pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle),
            pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[1],
        ],
        "persistence": pynvml.nvmlDeviceGetPersistenceMode(handle),
        "state": pynvml.nvmlDeviceGetPerformanceState(handle),
        "memory": [memory.total, memory.used + memory.free],
        "fields": [field(handle, number)[0] for number in (83, 191, 185, 186)],
        "energy_mj": [
            pynvml.nvmlDeviceGetTotalEnergyConsumption(handle),
            field(handle, 83)[1],
            field(handle, 191)[1],
        ],
        "truth": [simulation.true_energy_j(0), simulation.true_temperature_c(0)],
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_every_figure_is_read_by_the_real_bindings(host: Host, shape: str) -> None:
    seen = host.call(every_figure, shape=shape)

    board = SHAPES[shape]
    assert seen["count"] == 1 and seen["index"] == 0 and seen["persistence"] == 1 and seen["state"] == 0
    assert seen["driver"].count(".") == 2 and seen["nvml"].endswith(seen["driver"])
    assert (seen["name"], seen["architecture"]) == (board.name, board.architecture)
    assert seen["uuid"].startswith("GPU-") and len(seen["uuid"]) == 40 and seen["bus"] == "00000000:10:00.0"
    assert seen["power_mw"] == pytest.approx(400e3, rel=0.03)
    assert seen["temperature_c"] == seen["temperature_v_c"] == round(seen["truth"][1])
    assert [seen["sm_mhz"], seen["memory_mhz"], seen["most_mhz"]] == [
        board.sm_mhz,
        board.memory_mhz,
        board.sm_mhz,
    ]
    assert seen["reasons"] == seen["old_reasons"] == 0 and seen["utilization"] == 100
    assert seen["limits_mw"] == [board.limit_w * 1e3] * 4
    assert seen["memory"] == [board.memory_bytes] * 2 and seen["own_memory"] > 0
    assert seen["fields"] == [0, 0, 0 if board.averages else 3, 0]
    assert len(set(seen["energy_mj"])) == 1
    assert seen["energy_mj"][0] * 1e-3 == pytest.approx(5000 + seen["truth"][0], abs=60)


def power_after_a_step(shape: str) -> dict[str, Any]:
    simulation, (handle,) = opened(Board(shape=replace(SHAPES[shape], rise_s=0.0, leakage_w_per_c=0.0)))
    simulation.launch(0, MATMUL, 10_000)
    simulation.sleep(0.35)
    return {
        "usage_w": pynvml.nvmlDeviceGetPowerUsage(handle) * 1e-3,
        "instant_w": field(handle, 186)[1] * 1e-3,
        "average": field(handle, 185),
        "memory": field(handle, 186, scope=2),
        "module": field(handle, 186, scope=1)[0],
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_plain_power_is_an_average_since_ampere_but_not_on_the_a100(host: Host, shape: str) -> None:
    seen = host.call(power_after_a_step, shape=shape)

    board = SHAPES[shape]
    assert seen["instant_w"] == 400.0
    if board.averages:  # ticks at 0, 0.1, 0.2, 0.3: a third of the last second was work
        assert seen["usage_w"] == pytest.approx(0.3 * 400 + 0.7 * board.idle_w)
        assert seen["average"] == [0, round(seen["usage_w"] * 1e3)]
    else:
        assert seen["usage_w"] == 400.0 and seen["average"][0] == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert seen["memory"] == [0, 120_000] if shape == "H100" else seen["memory"][0] == 3
    assert seen["module"] == pynvml.NVML_ERROR_NOT_SUPPORTED


def plain_windows(lengths_s: list[float]) -> list[list[float]]:
    simulation, (handle,) = opened(Board(shape=STILL))
    read: list[list[float]] = []
    for length_s in lengths_s:
        simulation.sleep(
            3.0 - simulation.now_s() % 1.0 + 0.02
        )  # the tick of a full second has been published
        before_j, true_j = counter_j(handle), simulation.true_energy_j(0)
        simulation.run(0, MATMUL, round(length_s / MATMUL.busy_s))
        read.append([counter_j(handle) - before_j, simulation.true_energy_j(0) - true_j])
    return read


def test_plain_windows_err_as_they_do_on_hardware(host: Host) -> None:
    short, shorter, half, long = host.call(plain_windows, lengths_s=[0.05, 0.02, 0.5, 2.0])

    assert short[0] == shorter[0] == 0.0 and short[1] == pytest.approx(20.0)
    assert half[0] == pytest.approx(half[1], rel=0.05) and half[0] != half[1]
    assert long[0] == pytest.approx(long[1], rel=0.02)


def looks_during(call_s: float) -> dict[str, Any]:
    simulation, (handle,) = opened(Board(shape=A100), call_s=call_s)
    at_s: list[float] = []

    def look() -> float:
        counter_j(handle)
        at_s.append(simulation.now_s())
        return 0.25

    watch = simulation.watch(look)
    simulation.sleep(0.6)
    simulation.run(0, MATMUL, 500)
    watch.stop()
    simulation.sleep(5.0)
    return {"at_s": at_s, "now_s": simulation.now_s(), "calls": simulation.calls(0)}


def test_looks_are_taken_on_time_while_sleeping_and_while_work_runs(host: Host) -> None:
    seen = host.call(looks_during, call_s=0.0)

    assert seen["at_s"] == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    assert seen["now_s"] == pytest.approx(6.1) and seen["calls"] == 5


def test_a_call_costs_time(host: Host) -> None:
    seen = host.call(looks_during, call_s=0.01)

    assert seen["at_s"][0] == pytest.approx(0.03)  # initialising, finding the board, reading it
    assert seen["at_s"][1] == pytest.approx(0.03 + 0.25 + 0.01)


def look_that_fails() -> str:
    simulation, _ = opened(Board(shape=A100))

    def look() -> float:
        if simulation.now_s() > 0.5:
            raise ValueError("seen too much")
        return 0.1

    watch = simulation.watch(look)
    simulation.sleep(2.0)
    try:
        watch.stop()
    except ValueError as problem:
        return f"{problem} at {simulation.now_s()}"
    return "nothing"


def test_what_a_look_raises_is_raised_when_the_watch_stops(host: Host) -> None:
    assert host.call(look_that_fails) == "seen too much at 2.0"


def hour_of_small_operators() -> dict[str, float]:
    simulation, (handle,) = opened(Board(shape=STILL, gain=1.04))
    before_j = counter_j(handle)
    simulation.run(0, Work(busy_w=300.0, busy_s=20e-6, gap_s=5e-6, gap_w=100.0), times=144_000_000)
    return {
        "seen_j": counter_j(handle) - before_j,
        "now_s": simulation.now_s(),
        "true_j": simulation.true_energy_j(0),
    }


def test_an_hour_of_small_operators_is_exact(host: Host) -> None:
    seen = host.call(hour_of_small_operators)

    assert seen["now_s"] == pytest.approx(3600.0)
    assert seen["true_j"] == pytest.approx(3600 * (300 * 20 + 100 * 5) / 25, rel=1e-9)
    assert seen["seen_j"] == pytest.approx(
        1.04 * seen["true_j"], abs=1.04 * 0.11 * 260
    )  # the last period is not out


def queued() -> list[float]:
    simulation, _ = opened(Board(shape=STILL), Board(shape=replace(STILL, idle_w=50.0)))
    for _ in range(100):
        simulation.launch(0, MATMUL, 3)
        simulation.launch(0, Work(busy_w=200.0, busy_s=2e-3))
    simulation.launch(1, MATMUL, 100)
    simulation.synchronize(1)
    first_s = simulation.now_s()
    simulation.synchronize(0)
    return [first_s, simulation.now_s(), simulation.true_energy_j(0), simulation.true_energy_j(1)]


def test_boards_work_at_the_same_time_and_each_does_one_thing_after_another(host: Host) -> None:
    first_s, second_s, energy_j, other_j = host.call(queued)

    assert (first_s, second_s) == (pytest.approx(0.1), pytest.approx(0.5))
    assert energy_j == pytest.approx(100 * (3e-3 * 400 + 2e-3 * 200))
    assert other_j == pytest.approx(0.1 * 400 + 0.4 * 50)


def many_launches(count: int, busy_s: float) -> float:
    simulation, _ = opened(Board(shape=STILL))
    for _ in range(count):
        simulation.launch(0, Work(busy_w=300.0, busy_s=busy_s))
        simulation.sleep(busy_s + 1e-5)
    return simulation.true_energy_j(0)


def test_more_launches_than_are_remembered_are_all_counted(host: Host) -> None:
    energy_j = host.call(many_launches, count=40_000, busy_s=4e-5)

    assert energy_j == pytest.approx(40_000 * (300 * 4e-5 + 80 * 1e-5))


def test_more_launches_than_sensors_look_back_over_end_the_process() -> None:
    with pytest.raises(ScenarioFailed, match="more than 65536 stretches"):
        in_simulation(many_launches, count=60_000, busy_s=5e-6)


def sliced() -> dict[str, Any]:
    simulation, (handle, whole) = opened(Board(shape=A100, mig_slices=2), Board(shape=V100))
    simulation.run(0, MATMUL, 1000)
    slices = [pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index) for index in range(2)]
    uuids = [pynvml.nvmlDeviceGetUUID(each) for each in slices]
    parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(slices[1])
    return {
        "mode": pynvml.nvmlDeviceGetMigMode(handle),
        "capacity": pynvml.nvmlDeviceGetMaxMigDeviceCount(handle),
        "third": code_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, 2),
        "uuids": uuids,
        "names": [pynvml.nvmlDeviceGetName(each) for each in slices],
        "by_uuid": pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByUUID(uuids[1])),
        "parent": pynvml.nvmlDeviceGetUUID(parent) == pynvml.nvmlDeviceGetUUID(handle),
        "is_slice": [pynvml.nvmlDeviceIsMigDeviceHandle(each).value for each in (handle, slices[0])],
        "energy": code_of(pynvml.nvmlDeviceGetTotalEnergyConsumption, slices[0]),
        "power": code_of(pynvml.nvmlDeviceGetPowerUsage, slices[0]),
        "utilization": code_of(pynvml.nvmlDeviceGetUtilizationRates, handle),
        "board_j": counter_j(handle),
        "processes": len(pynvml.nvmlDeviceGetComputeRunningProcesses(slices[0])),
        "not_offered": code_of(pynvml.nvmlDeviceGetMigMode, whole),
    }


def test_slices_have_names_and_the_board_has_the_energy(host: Host) -> None:
    seen = host.call(sliced)

    assert seen["mode"] == [1, 1] and seen["capacity"] == 7 and seen["third"] == pynvml.NVML_ERROR_NOT_FOUND
    assert len(set(seen["uuids"])) == 2 and all(uuid.startswith("MIG-") for uuid in seen["uuids"])
    assert seen["by_uuid"] == seen["uuids"][1] and seen["parent"] and seen["is_slice"] == [0, 1]
    assert all("MIG" in name for name in seen["names"]) and seen["processes"] == 1
    assert seen["energy"] == seen["power"] == seen["utilization"] == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert seen["board_j"] > 5300 and seen["not_offered"] == pynvml.NVML_ERROR_NOT_SUPPORTED


def ordered() -> list[Any]:
    boards = [Board(shape=H100, bus=0x80, uuid="GPU-late"), Board(shape=V100, bus=0x08, uuid="GPU-early")]
    _, handles = opened(*boards)
    by_uuid = pynvml.nvmlDeviceGetHandleByUUID(b"GPU-late")
    return [
        [pynvml.nvmlDeviceGetUUID(handle) for handle in handles],
        pynvml.nvmlDeviceGetName(by_uuid),
        code_of(pynvml.nvmlDeviceGetHandleByUUID, b"GPU-none"),
        code_of(pynvml.nvmlDeviceGetHandleByIndex, 2),
    ]


def test_boards_are_counted_by_bus_and_found_by_identity(host: Host) -> None:
    assert host.call(ordered) == [["GPU-early", "GPU-late"], H100.name, 6, 2]


def contexts() -> list[float]:
    simulation, (handle,) = opened(Board(shape=STILL))
    figures: list[float] = []
    for is_open in (False, True):
        simulation.set_context(0, open=is_open)
        simulation.sleep(1.0)
        figures += [
            simulation.true_power_w(0),
            pynvml.nvmlDeviceGetPerformanceState(handle),
            pynvml.nvmlDeviceGetClockInfo(handle, 1),
            len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)),
        ]
    return figures


def test_without_a_context_a_board_idles_deeper(host: Host) -> None:
    deep, awake = host.call(contexts)[:4], host.call(contexts)[4:]

    assert deep == [A100.deep_idle_w, 8, A100.deep_idle_mhz, 0]
    assert awake == [A100.idle_w, 0, A100.sm_mhz, 1]


def warming() -> list[float]:
    simulation, _ = opened(Board(shape=A100))
    figures = [simulation.true_power_w(0)]
    for _ in range(2):
        simulation.run(0, MATMUL, 300_000)
        figures += [simulation.true_power_w(0), simulation.true_temperature_c(0)]
    return figures


def test_hot_boards_draw_more_until_they_are_as_hot_as_they_get(host: Host) -> None:
    idle_w, power_w, temperature_c, later_w, later_c = host.call(warming)

    assert idle_w == pytest.approx(81.84, abs=0.01)
    assert temperature_c == pytest.approx(27 + 0.09 * power_w, abs=0.1) and power_w > 405
    assert (later_w, later_c) == (pytest.approx(power_w, abs=0.1), pytest.approx(temperature_c, abs=0.1))


def refusals() -> list[str]:
    said: list[str] = []
    for make in (
        lambda: Simulation([Board(shape=replace(A100, period_s=0.0))]),
        lambda: Simulation([Board(shape=A100, uuid="x" * 200)]),
        lambda: Simulation([Board(shape=A100)] * 9),
        lambda: Simulation([Board(shape=A100)]).run(1, MATMUL),
        lambda: Simulation([Board(shape=A100)]).run(0, Work(busy_w=100.0, busy_s=0.0)),
        lambda: Simulation([Board(shape=A100)]).true_energy_j(0, at_s=5.0),
    ):
        try:
            make()
        except SimulationError as problem:
            said.append(str(problem))
    return said


def test_what_cannot_be_is_refused(host: Host) -> None:
    said = host.call(refusals)

    assert len(said) == 6
    assert "cannot be" in said[0] and "longer" in said[1] and "at most" in said[2] and "no board 1" in said[3]


def rules() -> list[int]:
    Simulation([Board(shape=A100)])
    before = (
        code_of(pynvml.nvmlDeviceGetCount)
        if pynvml.nvmlInit() is None and pynvml.nvmlShutdown() is None
        else 0
    )
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    return [
        before,
        code_of(pynvml.nvmlDeviceGetSerial, handle),
        code_of(pynvml.nvmlDeviceSetGpuLockedClocks, handle, 1000, 1000),
        code_of(pynvml.nvmlDeviceGetTemperature, handle, 5),
        code_of(pynvml.nvmlDeviceGetC2cModeInfoV, handle),
    ]


def test_the_library_keeps_the_rules_of_nvml() -> None:
    assert in_simulation(rules) == [
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
        pynvml.NVML_ERROR_NOT_SUPPORTED,
    ]


def seen_only_through_nvml() -> list[Any]:
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    return [pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) > 0]


def test_a_process_that_only_loads_nvml_sees_the_boards_of_its_environment() -> None:
    assert in_simulation(seen_only_through_nvml, boards=[Board(shape=H100)]) == [H100.name, True]


def failing() -> None:
    raise RuntimeError("on purpose")


def test_a_scenario_that_fails_says_why(host: Host) -> None:
    with pytest.raises(ScenarioFailed, match="on purpose"):
        host.call(failing)
    assert host.call("platform:system") != ""  # and the process goes on
