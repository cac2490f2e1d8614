"""Which boards the framework means."""

import pytest
from sensors import CODES, FakeBoard, FakeClock, FakeNvml

from magneton.meters.board import BoardLost
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.visible import board_indices

TWO = (FakeBoard(uuid="GPU-1111-aa"), FakeBoard(uuid="GPU-2222-bb"))


def nvml_of(*boards: FakeBoard) -> FakeNvml:
    return FakeNvml(FakeClock(), boards)


def environment(visible: str | None) -> dict[str, str]:
    return {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}


@pytest.mark.parametrize(
    ("device", "visible", "indices"),
    [
        ("cuda", None, (0,)),
        ("cuda:1", None, (1,)),
        ("cuda:0", "1", (1,)),
        ("cuda:1", "1, 0", (0,)),
        ("cuda:0", "GPU-2222-bb", (1,)),
        ("cuda:0", "GPU-2", (1,)),
        ("cuda:1", "GPU-2,GPU-1", (0,)),
        ("cuda:0,cuda:1", None, (0, 1)),
        ("cuda:0, cuda:1", "1,0", (1, 0)),
        ("cuda:1,cuda:1", None, (1,)),
        ("cuda:0", "1,-1,0", (1,)),
    ],
)
def test_visible_devices_are_found(device: str, visible: str | None, indices: tuple[int, ...]) -> None:
    nvml = nvml_of(*TWO)

    assert board_indices(nvml.module(), device, environment(visible)) == indices
    assert nvml.users == 0


@pytest.mark.parametrize(
    ("device", "visible"),
    [
        ("cuda:2", None),
        ("cuda:0", ""),
        ("cuda:0", "-1"),
        ("cuda:1", "0"),
        ("cuda:0", "7"),
        ("cuda:0", "GPU-"),
        ("cuda:x", None),
        ("cuda:0,cuda:2", None),
        ("cuda:2", "0,-1,1"),
        ("cuda:0,", None),
    ],
)
def test_a_device_that_is_not_there_is_absent(device: str, visible: str | None) -> None:
    with pytest.raises(SensorAbsent):
        board_indices(nvml_of(*TWO).module(), device, environment(visible))


def test_nvml_reads_no_processor() -> None:
    with pytest.raises(SensorAbsent, match="not 'cpu'"):
        board_indices(nvml_of(*TWO).module(), "cpu", {})


@pytest.mark.parametrize("entry", ["MIG-1234", "MIG-GPU-1111-aa/7/0"])
def test_a_named_slice_has_no_counter_of_its_own(entry: str) -> None:
    with pytest.raises(SensorUnusable, match="MIG slice"):
        board_indices(nvml_of(*TWO).module(), "cuda:0", environment(entry))


@pytest.mark.parametrize("visible", [None, "1", "GPU-2"])
def test_a_board_that_is_sliced_is_refused_however_it_is_named(visible: str | None) -> None:
    nvml = nvml_of(FakeBoard(uuid="GPU-1"), FakeBoard(uuid="GPU-2", sliced=True)).module()
    device = "cuda:1" if visible is None else "cuda:0"

    with pytest.raises(SensorUnusable, match="MIG is on") as refused:
        board_indices(nvml, device, environment(visible))
    assert "without MIG" in refused.value.hint
    assert board_indices(nvml, "cuda:0", {}) == (0,)


def test_unlike_boards_need_an_order_that_both_sides_share() -> None:
    nvml = nvml_of(FakeBoard(name="big", uuid="GPU-1"), FakeBoard(name="small", uuid="GPU-2")).module()

    with pytest.raises(SensorUnusable) as refused:
        board_indices(nvml, "cuda:0", {})
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in refused.value.hint
    assert board_indices(nvml, "cuda:1", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == (1,)
    assert board_indices(nvml, "cuda:0", environment("GPU-2")) == (1,)


def test_a_board_that_may_not_be_used_is_left_out_as_cuda_does() -> None:
    """NVML counts boards that a group of processes may not use, and CUDA does not."""
    closed = FakeBoard(uuid="GPU-1", open_error=CODES["NVML_ERROR_NO_PERMISSION"])
    nvml = nvml_of(closed, FakeBoard(uuid="GPU-2"), FakeBoard(uuid="GPU-3")).module()

    assert board_indices(nvml, "cuda:0,cuda:1", {}) == (1, 2)
    assert board_indices(nvml, "cuda:0", environment("1")) == (2,)
    assert board_indices(nvml, "cuda:0", environment("GPU-3")) == (2,)


def test_a_board_that_is_lost_is_in_the_way_of_numbers_behind_it_alone() -> None:
    lost = FakeBoard(uuid="GPU-2", open_error=CODES["NVML_ERROR_GPU_IS_LOST"])
    nvml = nvml_of(FakeBoard(uuid="GPU-1"), lost, FakeBoard(uuid="GPU-3")).module()

    assert board_indices(nvml, "cuda:0", {}) == (0,)
    assert board_indices(nvml, "cuda:0", environment("GPU-3")) == (2,)
    for device, visible in (("cuda:1", None), ("cuda:2", None), ("cuda:0", "2")):
        with pytest.raises(BoardLost, match="NVIDIA board 1"):
            board_indices(nvml, device, environment(visible))


@pytest.mark.parametrize(("device", "visible"), [("cuda:1", None), ("cuda:0", "1"), ("cuda:0", "GPU-1")])
def test_where_no_board_is_meant_one_that_may_not_be_used_is_the_reason(
    device: str, visible: str | None
) -> None:
    closed = FakeBoard(uuid="GPU-1", open_error=CODES["NVML_ERROR_NO_PERMISSION"])
    nvml = nvml_of(closed, FakeBoard(uuid="GPU-2"))

    with pytest.raises(SensorUnusable, match="NVIDIA board 0"):
        board_indices(nvml.module(), device, environment(visible))
    assert nvml.users == 0
