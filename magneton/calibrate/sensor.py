"""The meter to calibrate by: one that measures this device, or the reasons why there is none."""

from collections.abc import Callable

from magneton.errors import MagnetonError
from magneton.meters.meter import Meter
from magneton.meters.registry import AUTO, SENSORS, meter_names, open_meter, require_meter
from magneton.meters.sensors import SensorAbsent
from magneton.quantity import Provenance

OTHER = "zeus"  # reads what our own meters do not
_HINT = "magneton doctor says which sensors there are and what keeps them from being read"


def open_sensor(spec: str, device: str, open_named: Callable[[str, str], Meter] = open_meter) -> Meter:
    """``auto`` tries the sensor of this kind of device, then Zeus; what does not measure is refused."""
    if spec != AUTO:
        require_meter(spec)
        return _measuring(open_named(spec, device), spec, device)
    reasons: list[str] = []
    for name in (SENSORS[device.partition(":")[0]], OTHER):
        if name not in meter_names():
            continue
        try:
            return _measuring(open_named(name, device), name, device)
        except MagnetonError as error:  # absent, unusable, or its package is not installed
            reasons.append(f"{name}: {error}")
    raise SensorAbsent(
        f"nothing measures the energy of {device} here. Looked for {'; '.join(reasons)}",
        hint=f"{_HINT}; without one, use a shipped device: --meter modelled:NAME",
    )


def _measuring(meter: Meter, name: str, device: str) -> Meter:
    info = meter.info()
    if info.provenance is Provenance.MEASURED and info.unit == "J":
        return meter
    meter.close()
    raise SensorAbsent(
        f"meter {name!r} does not measure the energy of {device}: what it says is {info.provenance}",
        hint=_HINT,
    )
