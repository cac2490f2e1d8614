"""A counting meter reads no energy, and says which count stands for it."""

import pytest

from magneton.meters.counted import CountedMeter
from magneton.meters.meter import Meter, Reading
from magneton.quantity import Provenance


@pytest.mark.parametrize(("variant", "unit"), [("bytes", "B"), ("flops", "FLOP"), ("operators", "operators")])
def test_each_variant_has_its_unit(variant: str, unit: str) -> None:
    info = CountedMeter.open(variant, "cpu").info()

    assert (info.name, info.unit, info.provenance) == (f"counted:{variant}", unit, Provenance.COUNTED)
    assert (info.scale_low, info.scale_high) == (1.0, 1.0)


def test_windows_are_timed_and_their_energy_left_unread() -> None:
    times_s = iter((10.0, 12.5))
    meter: Meter = CountedMeter(wall_clock_s=lambda: next(times_s))

    meter.begin()

    assert meter.end() == Reading(duration_s=2.5, energy_j=None)
    assert meter.samples() == ()
    assert meter.shortest_window_s == 0.0
    meter.close()
