"""From a name to a meter; a name that is not one gets the nearest that is."""

import pytest

from magneton.errors import MagnetonError
from magneton.meters.registry import meter_names, open_meter


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


def test_the_names_hold_every_shipped_meter() -> None:
    assert {"auto", "modelled", "counted", "nvml", "zeus"} <= set(meter_names())
