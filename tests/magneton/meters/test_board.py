"""What a board answers, and what NVML's refusals become."""

from types import SimpleNamespace

import pytest
from sensors import CODES, FakeBoard, FakeClock, FakeNvml

from magneton.meters.board import BoardLost, board_count, checked_bindings, open_board
from magneton.meters.sensors import SensorAbsent, SensorUnusable


def nvml_of(*boards: FakeBoard, init_error: int | None = None) -> FakeNvml:
    return FakeNvml(FakeClock(), boards, init_error)


def test_figures_are_si() -> None:
    board = open_board(nvml_of(FakeBoard(offset_j=12.5, power_w=75.0)).module(), 0)

    assert board.total_energy_j() == pytest.approx(12.5)
    assert board.instant_power_w() == pytest.approx(75.0)
    assert (board.name, board.driver) == ("NVIDIA Fake", "600.1")


def test_a_part_without_instant_power_says_none_and_not_zero() -> None:
    assert open_board(nvml_of(FakeBoard(instant=False)).module(), 0).instant_power_w() is None


@pytest.mark.parametrize(
    ("name", "architecture", "power_w"),
    [
        ("Tesla V100-SXM2-32GB", 5, 75.0),
        ("NVIDIA A100-SXM4-80GB", 7, 75.0),
        ("NVIDIA A1000", 7, None),
        ("NVIDIA GeForce RTX 3090", 7, None),
        ("NVIDIA H100 80GB HBM3", 9, None),
    ],
)
def test_the_plain_power_call_counts_only_where_it_is_no_average(
    name: str, architecture: int, power_w: float | None
) -> None:
    board = FakeBoard(name=name, architecture=architecture, power_w=75.0, instant=False, usage=True)

    assert open_board(nvml_of(board).module(), 0).instant_power_w() == power_w


def test_the_fields_that_are_offered_are_told() -> None:
    assert open_board(nvml_of(FakeBoard()).module(), 0).offered_fields() == (186,)
    refusing = FakeBoard(field_error=CODES["NVML_ERROR_NOT_SUPPORTED"])
    assert open_board(nvml_of(refusing).module(), 0).offered_fields() == ()


def test_a_board_that_falls_off_the_bus_is_lost_for_every_sensor() -> None:
    lost = CODES["NVML_ERROR_GPU_IS_LOST"]
    board = open_board(nvml_of(FakeBoard(energy_error=lost, field_error=lost)).module(), 0)

    with pytest.raises(BoardLost):
        board.total_energy_j()
    with pytest.raises(BoardLost):
        board.instant_power_w()


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("NVML_ERROR_LIBRARY_NOT_FOUND", SensorAbsent, "no NVIDIA driver"),
        ("NVML_ERROR_DRIVER_NOT_LOADED", SensorAbsent, "no NVIDIA driver"),
        ("NVML_ERROR_NO_PERMISSION", SensorUnusable, "no permission"),
        ("NVML_ERROR_GPU_IS_LOST", BoardLost, "cannot read"),
    ],
)
def test_what_init_refuses_is_typed(code: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        board_count(nvml_of(init_error=CODES[code]).module())


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("NVML_ERROR_NOT_SUPPORTED", "does not offer the energy counter"),
        ("NVML_ERROR_FUNCTION_NOT_FOUND", "does not offer the energy counter"),
        ("NVML_ERROR_NO_PERMISSION", "no permission to read the energy counter"),
    ],
)
def test_a_counter_that_cannot_be_read_is_unusable(code: str, text: str) -> None:
    board = open_board(nvml_of(FakeBoard(energy_error=CODES[code])).module(), 0)

    with pytest.raises(SensorUnusable, match=text):
        board.total_energy_j()


def test_a_board_that_is_not_there_leaves_nvml_closed() -> None:
    nvml = nvml_of(FakeBoard())

    with pytest.raises(SensorAbsent):
        open_board(nvml.module(), 3)
    assert nvml.users == 0


def test_a_driver_that_refuses_to_be_let_go_is_left_alone() -> None:
    nvml = nvml_of(FakeBoard())
    board = open_board(nvml.module(), 0)
    nvml.shutdown_error = CODES["NVML_ERROR_GPU_IS_LOST"]

    board.close()
    with pytest.raises(SensorAbsent, match="no NVIDIA board 3"):
        open_board(nvml.module(), 3)


def test_another_package_of_the_same_name_is_recognised() -> None:
    with pytest.raises(SensorUnusable, match="shadows nvidia-ml-py") as refused:
        checked_bindings(SimpleNamespace(__file__="site-packages/pynvml/__init__.py"))
    assert "pip uninstall pynvml" in refused.value.hint
