"""What the host spends while a device works: beside the device's energy, and never in it.

A host that waits by spinning costs energy of its own, which no board's counter sees. Its window lies within
the device's, so that what the device's meter waits for (an edge of its counter) is not taken for work:

    device   begin .. edge |==================================| .. edge  end
    host                     |==============================|
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from magneton.meters.meter import Meter, Reading, too_short
from magneton.meters.modelled import ModelledMeter
from magneton.meters.rapl import RaplMeter
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.meters.zeus import ZeusMeter
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance


class BesideHost:
    """A device's meter whose readings carry the host's energy too. All else of a reading is the device's."""

    def __init__(self, meter: Meter, host: Meter) -> None:
        self._meter = meter
        self._host = host
        self.shortest_window_s = meter.shortest_window_s

    def info(self) -> MeterInfo:
        return self._meter.info()

    def host_info(self) -> MeterInfo:
        return self._host.info()

    def begin(self, pieces: int = 1) -> None:
        self._meter.begin(pieces)
        self._host.begin(pieces)

    def end(self) -> Reading:
        host = self._host.end()
        reading = self._meter.end()
        if too_short(host.duration_s, self._host.shortest_window_s):
            short = f"{host.duration_s:.3g} s are too short for the meter {self._host.info().name}"
            return replace(reading, host_gap=host.gap or short)
        return replace(reading, host_energy_j=host.energy_j, host_gap=host.gap)

    def samples(self) -> tuple[PowerSample, ...]:
        self._host.samples()  # the host's would be kept for ever, and belong to no device
        return self._meter.samples()

    def close(self) -> None:
        try:
            self._meter.close()
        finally:
            self._host.close()


def open_host_meter(device: str, open_measured: Callable[[], Meter] = RaplMeter.of_machine) -> Meter | None:
    """The sensor of the processors where it may be read, else the model of this process's CPU time.

    None for work on the CPU: there the host is the device. The model sees the worker only, in which a
    host that spins does so; what it starts besides is missing.
    """
    if device.partition(":")[0] == "cpu":
        return None
    with suppress(SensorAbsent, SensorUnusable):
        return open_measured()
    return ModelledMeter.open("cpu", "cpu")


def beside_host(
    meter: Meter, device: str, open_host: Callable[[str], Meter | None] = open_host_meter
) -> Meter:
    """``meter`` with the host beside it; ``meter`` itself where it measures nothing or reads its host."""
    reads_host = isinstance(meter, ZeusMeter) and meter.reads_host
    if meter.info().provenance is not Provenance.MEASURED or reads_host:
        return meter
    host = open_host(device)
    return meter if host is None else BesideHost(meter, host)


def host_info(meter: Meter) -> MeterInfo | None:
    """Which meter ``host_energy_j`` of ``meter``'s readings comes from; None: they have none."""
    return meter.host_info() if isinstance(meter, BesideHost | ZeusMeter) else None
