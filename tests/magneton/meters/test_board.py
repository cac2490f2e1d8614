"""Which board the framework means, and what NVML's refusals become."""

from types import SimpleNamespace

import pytest
from sensors import CODES, FakeBoard, FakeClock, FakeNvml

from magneton.meters.board import board_count, board_index, checked_bindings, open_board
from magneton.meters.sensors import SensorAbsent, SensorUnusable

TWO = (FakeBoard(uuid="GPU-1111-aa"), FakeBoard(uuid="GPU-2222-bb"))


def nvml_of(*boards: FakeBoard, init_error: int | None = None) -> FakeNvml:
    return FakeNvml(FakeClock(), boards, init_error)


@pytest.mark.parametrize(
    ("device", "visible", "index"),
    [
        ("cuda", None, 0),
        ("cuda:1", None, 1),
        ("cuda:0", "1", 1),
        ("cuda:1", "1, 0", 0),
        ("cuda:0", "GPU-2222-bb", 1),
        ("cuda:0", "GPU-2", 1),
    ],
)
def test_the_visible_device_is_found(device: str, visible: str | None, index: int) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    nvml = nvml_of(*TWO)

    assert board_index(nvml.module(), device, environment) == index
    assert nvml.users == 0


@pytest.mark.parametrize(
    ("device", "visible"),
    [
        ("cuda:2", None),
        ("cuda:0", ""),
        ("cuda:1", "0"),
        ("cuda:0", "7"),
        ("cuda:0", "GPU-"),
        ("cuda:x", None),
    ],
)
def test_a_device_that_is_not_there_is_absent(device: str, visible: str | None) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}

    with pytest.raises(SensorAbsent):
        board_index(nvml_of(*TWO).module(), device, environment)


def test_nvml_reads_no_processor() -> None:
    with pytest.raises(SensorAbsent, match="not 'cpu'"):
        board_index(nvml_of(*TWO).module(), "cpu", {})


def test_a_slice_of_a_board_has_no_counter_of_its_own() -> None:
    with pytest.raises(SensorUnusable, match="MIG slice"):
        board_index(nvml_of(*TWO).module(), "cuda:0", {"CUDA_VISIBLE_DEVICES": "MIG-1234"})


def test_unlike_boards_need_an_order_that_both_sides_share() -> None:
    nvml = nvml_of(FakeBoard(name="big"), FakeBoard(name="small")).module()

    with pytest.raises(SensorUnusable) as refused:
        board_index(nvml, "cuda:0", {})
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in refused.value.hint
    assert board_index(nvml, "cuda:1", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == 1


def test_figures_are_si() -> None:
    board = open_board(nvml_of(FakeBoard(offset_j=12.5, power_w=75.0)).module(), 0)

    assert board.total_energy_j() == pytest.approx(12.5)
    assert board.instant_power_w() == pytest.approx(75.0)
    assert (board.name, board.driver) == ("NVIDIA Fake", "600.1")


def test_a_part_without_instant_power_says_none_and_not_zero() -> None:
    assert open_board(nvml_of(FakeBoard(instant=False)).module(), 0).instant_power_w() is None


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("NVML_ERROR_LIBRARY_NOT_FOUND", SensorAbsent, "no NVIDIA driver"),
        ("NVML_ERROR_DRIVER_NOT_LOADED", SensorAbsent, "no NVIDIA driver"),
        ("NVML_ERROR_NO_PERMISSION", SensorUnusable, "no permission"),
        ("NVML_ERROR_GPU_IS_LOST", SensorUnusable, "cannot read"),
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


def test_another_package_of_the_same_name_is_recognised() -> None:
    with pytest.raises(SensorUnusable, match="shadows nvidia-ml-py") as refused:
        checked_bindings(SimpleNamespace(__file__="site-packages/pynvml/__init__.py"))
    assert "pip uninstall pynvml" in refused.value.hint
