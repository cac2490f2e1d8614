"""Boards as the doctor sees them, through the simulated NVML: probes, conditions, slices, refusals."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from looked_at import bare_machine
from simulated_board import (
    A100,
    H100,
    RTX_4090,
    Board,
    CallFails,
    Code,
    ForeignProcess,
    Host,
    Simulation,
    Throttled,
    Work,
    build_library,
    compiler,
    driver_missing,
    environment,
)

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")

SHAPES = {
    "A100": A100,
    "H100": H100,
    "RTX_4090": RTX_4090,
    "no power": replace(A100, instant=False, architecture=9, name="NVIDIA Mute"),
}
FAULTS = {
    "no driver": [driver_missing()],
    "no permission": [CallFails(target="nvmlInit", code=Code.NO_PERMISSION)],
    "second has no counter": [
        CallFails(board=1, target="nvmlDeviceGetTotalEnergyConsumption", code=Code.NOT_SUPPORTED)
    ],
    "hot and shared": [Throttled(board=0), ForeignProcess(board=0)],
}


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host(environment(build_library())) as found:
        yield found


def look(
    folder: str,
    shapes: list[str],
    own: dict[str, Any] | None = None,
    fault: str = "",
    variables: dict[str, str] | None = None,
    fresh: bool = False,
    work_w: float = 0.0,
) -> dict[str, Any]:
    """What a doctor finds, says, and how long it takes in virtual time."""
    import pynvml

    from magneton.doctor import examine
    from magneton.report.doctor import doctor_json

    boards = [Board(shape=SHAPES[shape], **(own or {})) for shape in shapes]
    simulation = Simulation(boards, faults=FAULTS.get(fault, []), seed=3)
    if work_w:
        simulation.launch(0, Work(busy_w=work_w, busy_s=1e-3), 60_000)
    said: list[str] = []
    around = bare_machine(
        Path(folder), nvml=lambda: pynvml, clock=simulation, environment=variables or {}, say=said.append
    )
    began_s = simulation.now_s()
    found = json.loads(doctor_json(examine(around, fresh=fresh)))
    return found | {
        "said": said,
        "took_s": simulation.now_s() - began_s,
        "by_name": {check["name"]: check for check in found["sensors"]},
    }


def looked(host: Host, folder: Path, shapes: list[str], **arguments: Any) -> Any:
    return host.call(look, folder=str(folder), shapes=shapes, **arguments)


def test_a_board_is_probed_and_its_windows_follow(host: Host, tmp_path: Path) -> None:
    found = looked(host, tmp_path, ["A100"], work_w=300.0)

    board = found["by_name"]["nvml, board 0"]
    assert board["state"] == "ok"
    assert board["update_period_s"] == pytest.approx(0.1, rel=0.02)
    assert board["resolution_j"] == pytest.approx(30.0, rel=0.1)
    assert board["shortest_window_s"] == pytest.approx(2.0, rel=0.02)
    assert board["probe"]["agreement"] == pytest.approx(1.0, abs=0.05)
    assert board["probe"]["stale"] is False
    assert board["probe"]["source"] == "counter"
    assert board["reads"] == "the energy counter, between its changes"
    assert board["now"]["power_w"] == pytest.approx(300.0, rel=0.1)
    assert board["now"]["temperature_c"] > 20
    assert board["now"]["throttle"] == []
    assert board["now"]["processes"] == 0
    assert found["meters"] == {"cpu": "modelled", "cuda": "nvml"}
    assert found["meter"] == "nvml"
    assert found["trust"][0].startswith("nvml, board 0: ratios on one board, joules within 5 %")


def test_a_counter_that_polling_disturbs_is_left_for_power(host: Host, tmp_path: Path) -> None:
    board = looked(host, tmp_path, ["RTX_4090"], work_w=300.0)["by_name"]["nvml, board 0"]

    assert board["probe"]["source"] == "power"
    assert board["probe"]["stale"] is True
    assert "disturbs" in board["reads"]


def test_a_probe_is_said_beforehand_and_kept_until_a_fresh_one_is_wanted(host: Host, tmp_path: Path) -> None:
    first = looked(host, tmp_path, ["H100"])
    second = looked(host, tmp_path, ["H100"])
    third = looked(host, tmp_path, ["H100"], fresh=True)

    assert [len(found["said"]) for found in (first, second, third)] == [1, 0, 1]
    assert "board 0, NVIDIA H100 80GB HBM3" in first["said"][0]
    assert first["took_s"] > 3
    assert second["took_s"] < 0.5
    probes = [found["by_name"]["nvml, board 0"]["probe"] for found in (first, second)]
    assert probes[0] == probes[1]


def test_each_board_has_its_own_state(host: Host, tmp_path: Path) -> None:
    found = looked(host, tmp_path, ["A100", "A100", "no power"], fault="second has no counter")["by_name"]

    assert found["nvml, board 0"]["state"] == "ok"
    assert found["nvml, board 1"]["state"] == "unusable"
    assert "does not offer" in found["nvml, board 1"]["detail"]
    assert found["nvml, board 2"]["probe"]["agreement"] is None
    assert "nothing to check the counter against" in found["nvml, board 2"]["advice"]


def test_what_is_wrong_now_is_seen_advised_and_in_the_sentences(host: Host, tmp_path: Path) -> None:
    found = looked(host, tmp_path, ["A100"], fault="hot and shared", work_w=300.0)

    board = found["by_name"]["nvml, board 0"]
    assert board["now"]["throttle"] == ["hw-thermal"]
    assert board["now"]["processes"] == 1
    assert "clocks are held down (hw-thermal)" in board["advice"]
    assert "not now: clocks are held down (hw-thermal) and others compute on it" in found["trust"][0]


def test_slices_share_a_counter(host: Host, tmp_path: Path) -> None:
    found = looked(host, tmp_path, ["A100"], own={"mig_slices": 2})

    board = found["by_name"]["nvml, board 0"]
    assert board["state"] == "unusable"
    assert "MIG is on, and its slices (up to 7) share one counter" in board["detail"]
    assert "nvidia-smi -i 0 -mig 0" in board["advice"]
    assert found["meters"]["cuda"] == "modelled"
    assert found["said"] == []


@pytest.mark.parametrize(
    ("variables", "detail"),
    [
        ({}, "CUDA_VISIBLE_DEVICES is not set: cuda:0 is board 0, cuda:1 is board 1"),
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, "CUDA_VISIBLE_DEVICES=1,0: cuda:0 is board 1, cuda:1 is board 0"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, "CUDA_VISIBLE_DEVICES=1: cuda:0 is board 1"),
    ],
)
def test_what_the_framework_calls_a_board(
    host: Host, tmp_path: Path, variables: dict[str, str], detail: str
) -> None:
    found = looked(host, tmp_path, ["A100", "A100"], variables=variables)["by_name"]["cuda devices"]

    assert (found["state"], found["detail"]) == ("ok", detail)


def test_hidden_boards_are_named_and_left_alone(host: Host, tmp_path: Path) -> None:
    found = looked(host, tmp_path, ["A100", "A100"], variables={"CUDA_VISIBLE_DEVICES": "1"})

    assert found["by_name"]["nvml, board 0"]["state"] == "absent"
    assert "hidden and not probed" in found["by_name"]["nvml, board 0"]["detail"]
    assert found["by_name"]["nvml, board 1"]["state"] == "ok"
    assert len(found["said"]) == 1


def test_where_it_is_not_clear_which_board_is_meant_all_are_probed(host: Host, tmp_path: Path) -> None:
    found = looked(host, tmp_path, ["A100", "H100"])

    assert found["by_name"]["cuda devices"]["state"] == "unusable"
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in found["by_name"]["cuda devices"]["advice"]
    assert len(found["said"]) == 2
    assert found["meters"]["cuda"] == "modelled"


def test_a_device_that_is_not_there_takes_auto_away_from_the_board(host: Host, tmp_path: Path) -> None:
    found = looked(host, tmp_path, ["A100"], variables={"CUDA_VISIBLE_DEVICES": "7"})

    assert found["by_name"]["cuda devices"]["state"] == "absent"
    assert found["by_name"]["nvml, board 0"]["state"] == "absent"
    assert found["meters"]["cuda"] == "modelled"


@pytest.mark.parametrize(("fault", "state"), [("no driver", "absent"), ("no permission", "unusable")])
def test_a_driver_that_refuses(host: Host, tmp_path: Path, fault: str, state: str) -> None:
    found = looked(host, tmp_path, ["A100"], fault=fault)

    assert found["by_name"]["nvml"]["state"] == state
    assert found["by_name"]["nvml"]["advice"]
    assert found["meters"] == {"cpu": "modelled"}


def test_a_driver_without_boards_is_absent(host: Host, tmp_path: Path) -> None:
    assert looked(host, tmp_path, [])["by_name"]["nvml"]["detail"] == "the driver knows no board"
