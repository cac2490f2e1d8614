"""NVIDIA boards: each with its sensors' probe, what it is like now, and what the framework calls it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from magneton.doctor.model import Check, Conditions
from magneton.doctor.surroundings import Surroundings
from magneton.errors import MagnetonError
from magneton.meters.board import Board, board_count, open_board
from magneton.meters.board_state import DISTURBING, read_state
from magneton.meters.foreign import own_kin
from magneton.meters.nvml import GAIN, PERIODS, SHORTEST_S
from magneton.meters.probe import AGREE, BoardProbe, probe_board
from magneton.meters.probe_cache import keep_probe, kept_probe
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.visible import board_indices

PROBE_S = 7
PROBES = "sensors"  # of the cache folder, where the meter keeps its probes
VISIBLE = "CUDA_VISIBLE_DEVICES"
_CONTAINER = "in a container: docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"


def look_at_boards(around: Surroundings, *, fresh: bool) -> tuple[Check, ...]:
    """Every board that the driver knows, hidden ones too, and which of them the framework sees."""
    try:
        nvml = around.nvml()
        count = board_count(nvml)
    except (SensorAbsent, SensorUnusable) as error:
        return (_refused("nvml", error, around),)
    if count == 0:
        return (Check(name="nvml", state="absent", detail="the driver knows no board"),)
    boards = [_board(around, nvml, index, fresh=fresh) for index in range(count)]
    return (*boards, _visible(around, nvml, count))


def seen_boards(nvml: Any, environment: Mapping[str, str], count: int) -> dict[str, int]:
    """NVML's index by the framework's name of a board. Raises what hides the first of them."""
    seen = {"cuda:0": board_indices(nvml, "cuda:0", environment)[0]}
    for ordinal in range(1, count):
        try:
            (seen[f"cuda:{ordinal}"],) = board_indices(nvml, f"cuda:{ordinal}", environment)
        except (SensorAbsent, SensorUnusable):
            break
    return seen


def _visible(around: Surroundings, nvml: Any, count: int) -> Check:
    """What CUDA_VISIBLE_DEVICES selects."""
    value = around.environment.get(VISIBLE)
    setting = f"{VISIBLE} is not set" if value is None else f"{VISIBLE}={value}"
    try:
        seen = seen_boards(nvml, around.environment, count)
    except (SensorAbsent, SensorUnusable) as error:
        state = "absent" if isinstance(error, SensorAbsent) else "unusable"
        return Check(name="cuda devices", state=state, detail=f"{setting}: {error}", advice=error.hint)
    names = ", ".join(f"{name} is board {index}" for name, index in seen.items())
    return Check(name="cuda devices", state="ok", detail=f"{setting}: {names}")


def _board(around: Surroundings, nvml: Any, index: int, *, fresh: bool) -> Check:
    name = f"nvml, board {index}"
    try:
        board = open_board(nvml, index)
    except (SensorAbsent, SensorUnusable) as error:
        return _refused(name, error, around)
    try:
        slices = _slices(board)
        if slices is not None:
            return _sliced(name, index, board, slices)
        probe = _probed(around, board, index, fresh=fresh)
        now = _conditions(board)
    except (SensorAbsent, SensorUnusable) as error:
        return _refused(name, error, around, f"{board.name}: ")
    finally:
        board.close()
    return Check(
        name=name,
        state="ok",
        detail=f"{board.name} ({board.uuid}), driver {board.driver}",
        advice="; ".join(_advice(probe, now)),
        reads=_reads(probe),
        update_period_s=probe.period_s,
        resolution_j=probe.step_j,
        shortest_window_s=max(SHORTEST_S, PERIODS * probe.period_s),
        gain=GAIN,
        probe=probe,
        now=now,
    )


def _probed(around: Surroundings, board: Board, index: int, *, fresh: bool) -> BoardProbe:
    """The probe that meters use, too; made now where there is none, or where that is asked for."""
    folder = around.cache() / PROBES
    kept = None if fresh else kept_probe(folder, board.uuid, board.driver)
    if kept is not None:
        return kept
    around.say(f"probing the sensors of board {index}, {board.name}: some {PROBE_S} s")
    probe = probe_board(board, around.clock)
    keep_probe(folder, board.uuid, board.driver, probe)
    return probe


def _conditions(board: Board) -> Conditions:
    state = read_state(board, own_kin())
    return Conditions(
        power_w=board.instant_power_w(),
        temperature_c=state.temperature_c,
        clock_hz=state.clock_hz,
        throttle=state.throttle,
        processes=_processes(board),
    )


def _processes(board: Board) -> int | None:
    """Those of others. Unlike a meter, whoever looks here need not compute on the board."""
    try:
        running = board.nvml.nvmlDeviceGetComputeRunningProcesses(board.handle)
    except board.nvml.NVMLError:
        return None
    kin = own_kin()
    return sum(not kin.has(int(each.pid)) for each in running)


def _slices(board: Board) -> int | None:
    """How many slices MIG may make of the board; None where MIG is off, or not offered."""
    try:
        current, _ = board.nvml.nvmlDeviceGetMigMode(board.handle)
        return int(board.nvml.nvmlDeviceGetMaxMigDeviceCount(board.handle)) if current == 1 else None
    except board.nvml.NVMLError:
        return None


def _sliced(name: str, index: int, board: Board, slices: int) -> Check:
    return Check(
        name=name,
        state="unusable",
        detail=f"{board.name} ({board.uuid}): MIG is on, and its slices (up to {slices}) share one counter",
        advice=f"measure on a whole board (sudo nvidia-smi -i {index} -mig 0 ends all slices), or use "
        "--meter counted:bytes",
    )


def _refused(name: str, error: MagnetonError, around: Surroundings, whose: str = "") -> Check:
    """A refusal, and the command that lifts it where it is one of file permissions."""
    if isinstance(error, SensorAbsent):
        return Check(name=name, state="absent", detail=f"{whose}{error}", advice=error.hint)
    closed = [path for path in sorted(around.devices.glob("nvidia*")) if _closed(path)]
    files = " ".join(str(path) for path in closed)
    grant = f"; sudo chmod a+rw {files}; {_CONTAINER}" if closed else ""
    return Check(name=name, state="unusable", detail=f"{whose}{error}", advice=f"{error.hint}{grant}")


def _closed(path: Path) -> bool:
    return not path.is_dir() and not os.access(path, os.R_OK | os.W_OK)


def _reads(probe: BoardProbe) -> str:
    if probe.source == "power":
        return "instantaneous power, summed: looking at the energy counter disturbs it"
    return "the energy counter, between its changes"


def _advice(probe: BoardProbe, now: Conditions) -> list[str]:
    advice: list[str] = []
    if probe.agreement is None:
        advice.append("nothing to check the counter against: this part tells no instantaneous power")
    elif abs(probe.agreement - 1) > AGREE:
        off = f"{abs(probe.agreement - 1) * 100:.0f} %"
        advice.append(
            f"power and counter disagree by {off}: ratios may hold, joules do not; try another driver"
        )
    if held := sorted(set(now.throttle) & DISTURBING):
        advice.append(
            f"clocks are held down ({', '.join(held)}): cool it or lower its load, blocks are rejected"
        )
    if now.processes:
        advice.append("others compute on it: blocks are rejected until they end (nvidia-smi lists them)")
    return advice
