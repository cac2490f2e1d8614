"""What goes wrong in the middle of a recording costs the windows in which it does, and no others.

Through the command line, over a simulated board in real time. Whatever happens, a figure is positive, or is
absent and says why.
"""

import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from board_recording import BoardRoom, Running
from commands import Left, told
from simulated_board import (
    A100,
    Board,
    CallFails,
    Code,
    CounterReset,
    Fault,
    ForeignProcess,
    Throttled,
    compiler,
    gpu_lost,
)
from toy_recording import alive, await_true

from magneton.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNRESOLVED
from magneton.profile.model import BlockReading, Profile
from magneton.profile.store import load
from magneton.record.journal import is_traced

pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc"),
    pytest.mark.slow,
]

COUNTER = "nvmlDeviceGetTotalEnergyConsumption"
FORBIDDEN = CallFails(board=0, target=COUNTER, code=Code.NO_PERMISSION)
WITHIN_S = 2.3  # after a block has ended the window of the next one is half over


def a_room(folder: Path, *faults: Fault) -> BoardRoom:
    return BoardRoom(folder / "room", Board(shape=A100), faults=faults)


def recording(room: BoardRoom, rounds: int = 2) -> Running:
    return room.measure("record", "board", "-o", "out.mgn", "--rounds", str(rounds))


def comparing(room: BoardRoom, rounds: int = 2) -> Running:
    return room.measure("compare", "board", "board", "--save", "kept", "--rounds", str(rounds))


def clean(profile: Profile) -> list[BlockReading]:
    return [block for block in profile.blocks if block.pass_ == "clean"]


def sound(profile: Profile) -> Profile:
    """Each figure of energy is positive, or absent for a reason."""
    for reading in (*profile.blocks, *profile.replays):
        assert (reading.energy_j is None) == bool(reading.gap), reading
        assert reading.energy_j is None or reading.energy_j > 0, reading
        assert reading.duration_s > 0
    for block in profile.blocks:
        assert block.host_energy_j is None or block.host_energy_j > 0
    assert all(row.power_w is None or row.power_w > 0 for row in profile.idle)
    return profile


def kept(room: BoardRoom, folder: str = "kept") -> tuple[Profile, Profile]:
    baseline, candidate = (sound(load(room.folder / folder / f"{name}.mgn")) for name in SIDES)
    return baseline, candidate


SIDES = ("baseline", "candidate")


def doubts(profile: Profile, kind: str) -> str:
    return " ".join(doubt.text for doubt in profile.doubts if doubt.kind == kind)


def shown(room: BoardRoom, profile: str = "out.mgn") -> str:
    left = room.run("show", profile)
    assert left.code == EXIT_OK, left.stderr
    return " ".join(left.stdout.split())


def test_a_counter_that_is_reset_costs_one_window_which_is_read_again(tmp_path: Path) -> None:
    with a_room(tmp_path) as room:
        run = recording(room).after_blocks(2)
        room.inject(CounterReset(board=0), after_s=WITHIN_S)
        left = run.left()
        text = shown(room)

    profile = sound(load(room.folder / "out.mgn"))
    assert left.code == EXIT_OK, left.stderr
    assert [block.gap for block in clean(profile)] == ["", ""]
    assert "it was reset" in doubts(profile, "block-rejected")
    told_of = "1 block of prefill was rejected: the energy counter ran backwards"
    assert told_of in text and f"doubt: {told_of}" in left.stderr


def test_a_permission_that_is_withdrawn_for_a_while_costs_what_is_read_meanwhile(tmp_path: Path) -> None:
    with a_room(tmp_path) as room:
        run = recording(room).after_blocks(2)
        room.inject(FORBIDDEN, after_s=WITHIN_S)
        time.sleep(WITHIN_S + 0.5)
        room.clear()
        left = run.left()

    profile = sound(load(room.folder / "out.mgn"))
    assert left.code == EXIT_OK, left.stderr
    assert [block.gap for block in clean(profile)] == ["", ""]
    assert "no permission to read the energy counter" in doubts(profile, "block-rejected")


def test_a_permission_that_is_withdrawn_for_good_leaves_what_was_read_before(tmp_path: Path) -> None:
    with a_room(tmp_path) as room:
        run = recording(room).after_blocks(2)
        room.inject(FORBIDDEN)
        left = run.left()

    profile = sound(load(room.folder / "out.mgn"))
    assert left.code == EXIT_OK, left.stderr
    first, second = clean(profile)
    assert first.energy_j is not None and profile.idle[0].power_w is not None
    assert second.energy_j is None and "no permission" in second.gap
    assert all("no permission" in reading.gap for reading in profile.replays)


def test_a_board_that_is_lost_ends_the_reading_and_not_the_comparison(tmp_path: Path) -> None:
    with a_room(tmp_path) as room:
        run = comparing(room, rounds=3).after_blocks(4)
        room.inject(gpu_lost(0), after_s=WITHIN_S)
        left = run.left()

        for profile in kept(room):
            by_round = {block.round: block for block in clean(profile)}
            assert by_round[0].energy_j is not None
            assert by_round[2].energy_j is None and "GPU is lost" in by_round[2].gap
            assert "GPU is lost" in doubts(profile, "meter-lost")
            assert "what was read before is kept" in doubts(profile, "meter-lost")
            assert [row.moment for row in profile.idle] == ["before"]
        assert "the meter was lost in the middle of the recording" in " ".join(left.stdout.split())
        assert "has one reading of a whole step" in " ".join(left.stdout.split())
        assert left.code == EXIT_UNRESOLVED


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (ForeignProcess(board=0), "1 foreign process computed on NVIDIA A100-SXM4-80GB"),
        (Throttled(board=0), "the clocks of NVIDIA A100-SXM4-80GB were held down: hw-thermal"),
    ],
)
def test_a_board_that_is_never_fit_gives_no_energy_and_says_why(
    tmp_path: Path, fault: Fault, reason: str
) -> None:
    with a_room(tmp_path, fault) as room:
        left = comparing(room, rounds=1).left()

        assert left.code == EXIT_UNRESOLVED, left.stdout
        assert "phase prefill has no reading of a whole step on both sides" in " ".join(left.stdout.split())
        for profile in kept(room):
            assert [block.energy_j for block in clean(profile)] == [None]
            assert [block.gap for block in clean(profile)] == [reason]
            assert f"3 blocks of prefill were rejected: {reason}" == doubts(profile, "block-rejected")
            assert [row.power_w for row in profile.idle] == [None, None]
            assert clean(profile)[0].host_energy_j is not None
        assert reason in shown(room, "kept/baseline.mgn")


def descendants(pid: int) -> set[int]:
    """Of a process, as the kernel lists them."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found |= {child, *descendants(child)}
    return found


def interrupted(room: BoardRoom, run: Running) -> Left:
    """Ctrl-C, after which no process is left."""
    workers = descendants(run.pid)
    assert workers
    run.interrupt()
    left = run.left(timeout_s=60.0)
    told(left, "the recording was stopped", f"magneton recover {room.cache / 'runs'}", code=EXIT_INTERRUPTED)
    assert await_true(lambda: not any(map(alive, workers)))
    return left


def recovered(room: BoardRoom, left: Left) -> tuple[Profile, Profile]:
    folder = left.stderr.partition("magneton recover ")[2].split()[0]
    assert room.run("recover", folder, "--save", "recovered").code == EXIT_OK
    return kept(room, "recovered")


def all_traced(journals: Iterable[Path]) -> bool:
    return len(found := tuple(journals)) == 2 and all(map(is_traced, found))


def test_an_interrupt_within_a_window_keeps_every_block_before_it(tmp_path: Path) -> None:
    with a_room(tmp_path) as room:
        run = comparing(room).after_blocks(5)
        time.sleep(WITHIN_S)
        left = interrupted(room, run)

        baseline, candidate = recovered(room, left)
        assert len(clean(baseline)) == 1 and len(clean(candidate)) == 2
        for profile in (baseline, candidate):
            assert all(block.energy_j is not None for block in clean(profile))
            assert "cut short" in doubts(profile, "cut-short")
        assert "cut short" in shown(room, "recovered/baseline.mgn")


def test_an_interrupt_while_the_meter_waits_at_rest_keeps_the_trace(tmp_path: Path) -> None:
    with a_room(tmp_path) as room:
        run = comparing(room)
        assert await_true(lambda: all_traced(room.journals()), within_s=60.0)
        time.sleep(WITHIN_S)
        left = interrupted(room, run)

        for profile in recovered(room, left):
            assert len(profile.operators) == 2
            assert clean(profile) == []
