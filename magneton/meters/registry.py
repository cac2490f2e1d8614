"""From what the user typed (``nvml``, ``counted:flops``, ``auto``) to an open meter."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, cast

from magneton.errors import MagnetonError
from magneton.meters.meter import Meter
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.names import unknown
from magneton.plugins import METERS, load_plugin, plugin_names

AUTO = "auto"


class MeterPlugin(Protocol):
    """What an entry point in ``magneton.meters`` names: usually the meter's own class."""

    @property
    def variants(self) -> Sequence[str]:
        """The valid variants, the default first; empty where there is no choice."""
        ...

    def open(self, variant: str, device: str) -> Meter:
        """A meter for work on ``device``. ``variant`` is one of ``variants``, or "" where there is none."""
        ...


def meter_names() -> tuple[str, ...]:
    """Every meter that can be asked for, ours and other people's; nothing is imported."""
    return (AUTO, *plugin_names(METERS))


def require_meter(spec: str) -> None:
    """Refuse a name that no meter has, before anything is loaded to be measured with it."""
    name = spec.partition(":")[0]
    if name not in meter_names():
        raise unknown("meter", name, meter_names())


def open_meter(spec: str, device: str) -> Meter:
    """The meter ``NAME[:variant]`` for work on ``device`` ("cpu", "cuda:0").

    ``auto`` is the board's counter where the work runs on a board that has one, else the model of this CPU.
    """
    if spec == AUTO:
        return automatic_meter(device, lambda board: open_meter("nvml", board))
    require_meter(spec)
    name, colon, variant = spec.partition(":")
    plugin = _plugin(name)
    if not plugin.variants:
        if colon:
            raise MagnetonError(
                f"meter {name!r} has no variants, not {variant!r}", hint=f"use --meter {name}"
            )
        return plugin.open("", device)
    if not colon:
        return plugin.open(plugin.variants[0], device)
    if variant not in plugin.variants:
        raise unknown(f"variant of meter {name!r}", variant, plugin.variants)
    return plugin.open(variant, device)


def automatic_meter(device: str, open_measured: Callable[[str], Meter]) -> Meter:
    """What ``open_measured`` gives for a board, else the model of this CPU.

    Falling back is not silent: the profile and every report carry the meter's name, provenance and source.
    """
    if device.startswith("cuda"):
        with suppress(SensorAbsent, SensorUnusable):
            return open_measured(device)
    return open_meter("modelled", device)


def _plugin(name: str) -> MeterPlugin:
    if name == AUTO:
        raise MagnetonError(f"meter {AUTO!r} has no variants", hint=f"use --meter {AUTO}")
    return cast("MeterPlugin", load_plugin(METERS, name))
