"""NVIDIA boards: each with its sensors' probe, and what it is like now."""

import os
from pathlib import Path
from typing import Any

from magneton.doctor.model import Check, Conditions
from magneton.doctor.selection import selected
from magneton.doctor.surroundings import Surroundings
from magneton.errors import MagnetonError
from magneton.meters.board import Board, board_count, open_board
from magneton.meters.board_state import DISTURBING, read_state
from magneton.meters.foreign import own_kin
from magneton.meters.nvml import GAIN, PERIODS, SHORTEST_S
from magneton.meters.probe import AGREE, BoardProbe, probe_board
from magneton.meters.probe_cache import keep_probe, kept_probe
from magneton.meters.sensors import SensorAbsent, SensorUnusable

PROBE_S = 7
PROBES = "sensors"  # of the cache folder, where the meter keeps its probes
_CONTAINER = "in a container: docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"


def look_at_boards(around: Surroundings, *, fresh: bool) -> tuple[Check, ...]:
    """Every board that the driver knows, and which of them the framework sees. Hidden ones are left alone."""
    try:
        nvml = around.nvml()
        count = board_count(nvml)
    except (SensorAbsent, SensorUnusable) as error:
        return (_refused("nvml", error, around),)
    if count == 0:
        return (Check(name="nvml", state="absent", detail="the driver knows no board"),)
    selection = selected(nvml, around.environment, count)
    boards = [
        _hidden(nvml, index, around)
        if index in selection.hidden
        else _board(around, nvml, index, fresh=fresh)
        for index in range(count)
    ]
    return (*boards, selection.check)


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


def _hidden(nvml: Any, index: int, around: Surroundings) -> Check:
    """Work that starts here does not meet it: watching its sensors for seconds would be for nothing."""
    name = f"nvml, board {index}"
    try:
        board = open_board(nvml, index)
    except (SensorAbsent, SensorUnusable) as error:
        return _refused(name, error, around)
    board.close()
    return Check(name=name, state="absent", detail=f"{board.name} ({board.uuid}), hidden and not probed")


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
