"""Only what measures may calibrate."""

from collections.abc import Callable

import pytest
from planted_device import PlantedDevice, PlantedMeter

from magneton.calibrate.sensor import open_sensor
from magneton.errors import MagnetonError
from magneton.meters.meter import Meter
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.quantity import Provenance


def offering(**meters: Meter | MagnetonError) -> Callable[[str, str], Meter]:
    def open_named(name: str, device: str) -> Meter:
        del device
        found = meters[name]
        if isinstance(found, MagnetonError):
            raise found
        return found

    return open_named


def a_meter(provenance: Provenance = Provenance.MEASURED) -> PlantedMeter:
    return PlantedMeter(device=PlantedDevice(), provenance=provenance)


NO_DRIVER = SensorAbsent("no NVIDIA driver", hint="install it")
CLOSED = SensorUnusable("only root may read it", hint="chmod")


@pytest.mark.parametrize(("device", "name"), [("cuda:0", "nvml"), ("cpu", "rapl")])
def test_auto_is_the_sensor_of_the_device(device: str, name: str) -> None:
    meter = a_meter()

    assert open_sensor("auto", device, offering(**{name: meter})) is meter


def test_zeus_is_tried_where_our_own_meter_reads_nothing() -> None:
    meter = a_meter()

    assert open_sensor("auto", "cuda:0", offering(nvml=NO_DRIVER, zeus=meter)) is meter


def test_without_a_sensor_the_refusal_says_what_was_looked_for() -> None:
    with pytest.raises(SensorAbsent) as raised:
        open_sensor("auto", "cpu", offering(rapl=CLOSED, zeus=NO_DRIVER))

    assert "rapl: only root may read it; zeus: no NVIDIA driver" in str(raised.value)
    assert "magneton doctor" in raised.value.hint


@pytest.mark.parametrize("provenance", [Provenance.MODELLED, Provenance.COUNTED])
def test_a_meter_that_does_not_measure_is_refused_and_closed(provenance: Provenance) -> None:
    meter = a_meter(provenance)

    with pytest.raises(SensorAbsent, match=provenance) as raised:
        open_sensor("modelled", "cpu", offering(modelled=meter))

    assert "magneton doctor" in raised.value.hint
    assert meter.closed


def test_a_meter_that_was_asked_for_is_not_replaced() -> None:
    with pytest.raises(SensorAbsent, match="no NVIDIA driver"):
        open_sensor("nvml", "cuda:0", offering(nvml=NO_DRIVER, zeus=a_meter()))


def test_a_name_that_no_meter_has_offers_the_nearest() -> None:
    with pytest.raises(MagnetonError) as raised:
        open_sensor("nvlm", "cuda:0", offering())
    assert "'nvml'" in raised.value.hint
