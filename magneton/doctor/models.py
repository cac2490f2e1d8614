"""The models of devices that a run on this machine can be costed for."""

from magneton.doctor.model import Check
from magneton.errors import MagnetonError
from magneton.meters.devices import device_names, read_model

PICO = 1e12


def look_at_models() -> tuple[Check, ...]:
    """Each of the device files that ship with magneton."""
    return tuple(_model(name) for name in device_names())


def _model(name: str) -> Check:
    meter = f"modelled:{name}"
    try:
        model = read_model(name)
    except MagnetonError as error:
        return Check(name=meter, state="unusable", detail=str(error), advice=error.hint)
    watts = f"{model.constant_power_w.value:g} to {model.tdp_w.value:g} W"
    byte = model.memory_j_per_byte.times(PICO)
    return Check(
        name=meter,
        state="ok",
        detail=f"{model.name}: {watts}, {byte.low:.0f} to {byte.high:.0f} pJ for a byte from memory",
    )
