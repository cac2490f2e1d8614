"""What cannot be measured is refused by the command line: what is wrong, what to do, and nothing loaded."""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from board_recording import BoardRoom
from commands import Left, magneton, told
from simulated_board import (
    A100,
    Board,
    CallFails,
    Code,
    Fault,
    compiler,
    driver_missing,
    gpu_lost,
)

from magneton.configs import config_path
from magneton.meters.powercap import POWERCAP, summed_zones
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.profile.store import load, save

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")

COUNTER = "nvmlDeviceGetTotalEnergyConsumption"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardRoom]:
    with BoardRoom(tmp_path_factory.mktemp("refused") / "room", Board(shape=A100)) as found:
        yield found


def refused(room: BoardRoom, *needed: str, meter: str = "nvml", device: str = "cuda:0") -> None:
    left = room.measure("record", "board", "-o", "never.mgn", meter=meter, device=device).left()
    told(left, *needed, code=2)
    assert "Traceback" not in left.stderr
    assert not (room.folder / "never.mgn").exists()
    assert not (room.folder / "loaded").exists()
    assert room.journals() == ()


@pytest.mark.parametrize(
    ("fault", "needed"),
    [
        (driver_missing(), ("no NVIDIA driver", "choose another meter")),
        (CallFails(target="nvmlInit", code=Code.NO_PERMISSION), ("no permission to read NVML", "utility")),
        (
            CallFails(board=0, target=COUNTER, code=Code.NO_PERMISSION),
            ("no permission to read the energy counter of NVIDIA A100", "device files readable"),
        ),
        (
            CallFails(board=0, target=COUNTER, code=Code.NOT_SUPPORTED),
            ("does not offer the energy counter", "need Volta or later", "--meter counted:bytes"),
        ),
        (gpu_lost(0), ("GPU is lost", "the board needs a reset")),
    ],
)
def test_a_board_that_cannot_be_read(room: BoardRoom, fault: Fault, needed: tuple[str, ...]) -> None:
    room.inject(fault)
    try:
        refused(room, *needed)
    finally:
        room.clear()


@pytest.mark.parametrize(
    ("meter", "device", "needed"),
    [
        ("nvml", "cuda:1", ("there is no cuda:1: NVIDIA boards: 1", "choose a device that is visible")),
        ("nvml", "cpu", ("NVML reads NVIDIA boards, not 'cpu'", "cuda:0")),
        ("rapl", "cuda:0", ("RAPL reads processors, and the work runs on cuda:0", "--meter nvml")),
    ],
)
def test_a_meter_that_does_not_fit(room: BoardRoom, meter: str, device: str, needed: tuple[str, ...]) -> None:
    refused(room, *needed, meter=meter, device=device)


def refused_at_once(folder: Path, meter: str, *needed: str) -> None:
    """By this process, which starts no other."""
    never = folder / "never.py"
    never.write_text("raise AssertionError('loaded')\n")
    left = magneton("record", f"{never}:build", "-o", folder / "never.mgn", "--meter", meter, "--quiet")
    told(left, *needed, code=2)
    assert not (folder / "never.mgn").exists()


@pytest.mark.parametrize(
    ("meter", "needed"),
    [
        ("nvlm", ("unknown meter 'nvlm'", "did you mean 'nvml'?")),
        ("modelled:h20", ("unknown variant", "did you mean 'h200'?")),
        ("modelled:nowhere.toml", ("cannot read nowhere.toml", "check the path")),
    ],
)
def test_a_meter_that_there_is_not(tmp_path: Path, meter: str, needed: tuple[str, ...]) -> None:
    refused_at_once(tmp_path, meter, *needed)


@pytest.mark.parametrize(
    ("was", "instead", "needed"),
    [
        ("[tdp_w]", "[tpd_w]", ("unknown key 'tpd_w'", "did you mean 'tdp_w'?")),
        ("[cache_mb]\nvalue = 50.0", "[cache_mb]\nworth = 50.0", ("unknown key 'worth'",)),
        ("[cache_mb]\nvalue = 50.0", "[cache_mb]", ("key 'value' is missing",)),
        ("[cache_mb]\nvalue = 50.0", "[cache_mb]\nvalue = -50.0", ("cache_mb",)),
        ("[cache_mb]\nvalue = 50.0", "[cache_mb]\nvalue = nan", ("cache_mb",)),
    ],
)
def test_a_device_file_that_will_not_do(
    tmp_path: Path, was: str, instead: str, needed: tuple[str, ...]
) -> None:
    sound = config_path("devices", "h200").read_text()
    assert sound.count(was) == 1
    (tmp_path / "bad.toml").write_text(sound.replace(was, instead))

    refused_at_once(tmp_path, f"modelled:{tmp_path / 'bad.toml'}", "bad.toml", *needed)


def test_a_slice_of_a_board(tmp_path: Path) -> None:
    with BoardRoom(tmp_path / "room", Board(shape=A100, mig_slices=2)) as room:
        refused(room, "cuda:0 is a slice of NVIDIA A100-SXM4-80GB: MIG is on", "--meter counted:bytes")


def has_driver() -> bool:
    with suppress(OSError):
        return bool(ctypes.CDLL("libnvidia-ml.so.1"))
    return False


def may_read_processors() -> bool:
    with suppress(SensorAbsent, SensorUnusable):
        return bool(summed_zones(POWERCAP))
    return False


def here(room: BoardRoom, meter: str, device: str) -> Left:
    """On this machine as it is, without the simulated driver."""
    bare = {"LD_LIBRARY_PATH": ""}
    run = room.measure("record", "board", "-o", "never.mgn", meter=meter, device=device, variables=bare)
    return run.left()


@pytest.mark.skipif(has_driver(), reason="there is an NVIDIA driver here")
def test_no_driver_on_this_machine(room: BoardRoom) -> None:
    told(here(room, "nvml", "cuda:0"), "no NVIDIA driver", "Library Not Found", code=2)


@pytest.mark.skipif(may_read_processors(), reason="RAPL can be read here")
def test_no_processor_may_be_read_on_this_machine(room: BoardRoom) -> None:
    told(here(room, "rapl", "cpu"), str(POWERCAP), code=2)


@pytest.mark.skipif(may_read_processors(), reason="Zeus finds a sensor here")
def test_zeus_finds_no_processor_on_this_machine(room: BoardRoom) -> None:
    pytest.importorskip("zeus")
    left = room.measure("record", "board", "-o", "never.mgn", meter="zeus", device="cpu").left()
    told(left, "Zeus finds no sensor", "--meter modelled", code=2)


def test_two_meters_are_never_compared_and_the_second_is_not_even_opened(room: BoardRoom) -> None:
    modelled = room.measure("record", "board", "-o", "modelled.mgn", "--rounds", "1", meter="modelled").left()
    assert modelled.code == 0, modelled.stderr
    profile = load(room.folder / "modelled.mgn")
    measured = replace(
        profile, origin=replace(profile.origin, meter=replace(profile.origin.meter, name="nvml"))
    )
    save(measured, room.folder / "measured.mgn")

    between_files = room.run("compare", "modelled.mgn", "measured.mgn")
    with_a_system = room.measure("compare", "modelled.mgn", "board", meter="nvml").left()
    for left in (between_files, with_a_system):
        told(left, "meter is 'modelled' in the baseline and 'nvml' in the candidate", "same --meter", code=4)
