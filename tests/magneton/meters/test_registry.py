"""From a name to a meter; a name that is not one gets the nearest that is."""

import pytest

from magneton.errors import MagnetonError
from magneton.meters.counted import CountedMeter
from magneton.meters.meter import Meter
from magneton.meters.modelled import ModelledMeter
from magneton.meters.registry import automatic_meter, meter_names, open_meter
from magneton.meters.sensors import SensorAbsent, SensorUnusable


@pytest.mark.parametrize(
    ("spec", "name", "unit"),
    [
        ("modelled", "modelled", "J"),
        ("modelled:cpu", "modelled", "J"),
        ("counted", "counted:bytes", "B"),
        ("counted:flops", "counted:flops", "FLOP"),
        ("counted:operators", "counted:operators", "operators"),
        ("auto", "modelled", "J"),
    ],
)
def test_a_name_opens_its_meter(spec: str, name: str, unit: str) -> None:
    meter = open_meter(spec, "cpu")

    assert (meter.info().name, meter.info().unit) == (name, unit)
    meter.close()


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("modeled", "did you mean 'modelled'?"),
        ("nvlm", "did you mean 'nvml'?"),
        ("counted:byte", "did you mean 'bytes'?"),
        ("counted:", "valid: bytes, flops, operators"),
        ("nvml:fast", "use --meter nvml"),
        ("auto:x", "use --meter auto"),
        ("", "valid: auto, counted"),
    ],
)
def test_what_is_no_meter_gets_the_nearest_name(spec: str, hint: str) -> None:
    with pytest.raises(MagnetonError) as refused:
        open_meter(spec, "cpu")
    assert hint in refused.value.hint


@pytest.mark.parametrize("problem", [SensorAbsent, SensorUnusable])
def test_auto_models_where_a_board_cannot_be_read(problem: type[MagnetonError]) -> None:
    def no_board(device: str) -> Meter:
        raise problem(f"{device} cannot be read", hint="see doctor")

    info = automatic_meter("cuda:0", no_board).info()

    assert info.name == "modelled"
    assert "what cuda:0 itself spends is not in it" in info.source


def test_auto_reads_the_board_that_the_work_runs_on() -> None:
    asked: list[str] = []

    def a_board(device: str) -> Meter:
        asked.append(device)
        return CountedMeter()

    assert isinstance(automatic_meter("cuda:1", a_board), CountedMeter)
    assert isinstance(automatic_meter("cpu", a_board), ModelledMeter)
    assert asked == ["cuda:1"]


def test_the_names_hold_every_shipped_meter() -> None:
    assert {"auto", "modelled", "counted", "nvml", "zeus"} <= set(meter_names())
