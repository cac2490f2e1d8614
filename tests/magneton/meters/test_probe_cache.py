"""Probes are kept for each board and driver; whatever else lies there instead is not believed."""

import json
from pathlib import Path

import pytest
from sensors import FakeBoard, FakeClock, FakeNvml

from magneton.meters.board import Board, open_board
from magneton.meters.probe import BoardProbe, probe_board
from magneton.meters.probe_cache import keep_probe, kept_probe, probed_board

UUID, DRIVER = "GPU-11111111-aaaa", "600.1"


def opened(clock: FakeClock, **nvml: str) -> Board:
    return open_board(FakeNvml(clock, [FakeBoard()], **nvml).module(), 0)  # type: ignore[arg-type]  # by name


@pytest.fixture
def probe() -> BoardProbe:
    clock = FakeClock()
    return probe_board(opened(clock), clock)


def test_the_second_time_costs_no_time(tmp_path: Path) -> None:
    clock = FakeClock()
    first = probed_board(opened(clock), clock, tmp_path / "sensors")
    after_s = clock.now_s()

    assert probed_board(opened(clock), clock, tmp_path / "sensors") == first
    assert clock.now_s() == after_s
    assert len(list((tmp_path / "sensors").iterdir())) == 1


def test_another_driver_is_probed_anew(tmp_path: Path) -> None:
    clock = FakeClock()
    probed_board(opened(clock), clock, tmp_path)
    before_s = clock.now_s()
    probed_board(opened(clock, driver="601.0"), clock, tmp_path)

    assert clock.now_s() > before_s
    assert len(list(tmp_path.iterdir())) == 2


def test_without_a_folder_nothing_is_kept() -> None:
    clock = FakeClock()
    probed_board(opened(clock), clock, None)
    before_s = clock.now_s()
    probed_board(opened(clock), clock, None)

    assert clock.now_s() > before_s


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path, probe: BoardProbe) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")

    keep_probe(blocker / "sensors", UUID, DRIVER, probe)

    assert kept_probe(blocker / "sensors", UUID, DRIVER) is None


def test_names_cannot_lead_out_of_the_folder(tmp_path: Path, probe: BoardProbe) -> None:
    keep_probe(tmp_path / "sensors", "../../etc/x", "../y", probe)

    assert kept_probe(tmp_path / "sensors", "../../etc/x", "../y") == probe
    assert [path.name for path in tmp_path.iterdir()] == ["sensors"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not json",
        "[" * 2000,
        "[]",
        "{}",
        " " * 5000,
        '{"version": 1, "uuid": "GPU-11111111-aaaa", "driver": "600.1", "probe": []}',
    ],
)
def test_a_damaged_file_is_no_file(tmp_path: Path, probe: BoardProbe, content: str) -> None:
    keep_probe(tmp_path, UUID, DRIVER, probe)
    (file,) = tmp_path.iterdir()
    file.write_text(content)

    assert kept_probe(tmp_path, UUID, DRIVER) is None


def test_a_file_that_is_too_large_is_no_file(tmp_path: Path, probe: BoardProbe) -> None:
    keep_probe(tmp_path, UUID, DRIVER, probe)
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text() + " " * 5000)

    assert kept_probe(tmp_path, UUID, DRIVER) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("period_s", float("nan")),
        ("period_s", -0.1),
        ("period_s", 1e9),
        ("period_s", "0.1"),
        pytest.param("period_s", 10**400, id="more than a float holds"),
        ("poll_s", 0),
        ("step_j", True),
        ("agreement", 0),
        ("noise", -1),
        ("stale", "no"),
        ("source", "guess"),
        ("fields", ["186"]),
        ("fields", [float("inf")]),
        ("fields", [1] * 100),
        ("fields", None),
    ],
)
def test_a_figure_that_no_probe_finds_is_not_believed(
    tmp_path: Path, probe: BoardProbe, name: str, value: object
) -> None:
    keep_probe(tmp_path, UUID, DRIVER, probe)
    (file,) = tmp_path.iterdir()
    content = json.loads(file.read_text())
    content["probe"][name] = value
    file.write_text(json.dumps(content))

    assert kept_probe(tmp_path, UUID, DRIVER) is None


@pytest.mark.parametrize(("name", "value"), [("version", 99), ("uuid", "GPU-2"), ("driver", "1")])
def test_a_probe_of_something_else_is_not_taken(
    tmp_path: Path, probe: BoardProbe, name: str, value: object
) -> None:
    keep_probe(tmp_path, UUID, DRIVER, probe)
    (file,) = tmp_path.iterdir()
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))

    assert kept_probe(tmp_path, UUID, DRIVER) is None
