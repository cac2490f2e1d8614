"""From what the user typed (``nvml``, ``counted:flops``, ``auto``) to an open meter."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from magneton.errors import MagnetonError
from magneton.meters.meter import Meter
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.names import unknown
from magneton.plugins import METERS, load_plugin, plugin_names

AUTO = "auto"
FILE = "FILE.toml"  # among a plugin's variants, it stands for any file of that kind
SENSORS: Mapping[str, str] = {"cpu": "rapl", "cuda": "nvml"}  # which meter ``auto`` means, by kind of device


class MeterPlugin(Protocol):
    """What an entry point in ``magneton.meters`` names: usually the meter's own class."""

    @property
    def variants(self) -> Sequence[str]:
        """The valid variants, the default first; empty where there is no choice."""
        ...

    def open(self, variant: str, device: str) -> Meter:
        """A meter for work on ``device``. ``variant`` is one of ``variants``, or "" where there is none; with
        ``FILE`` among them it may be the path of a file.
        """
        ...


@runtime_checkable
class ChecksFiles(Protocol):
    """What a plugin with ``FILE`` among its variants may offer besides."""

    def check_file(self, variant: str) -> None:
        """Refuse a file that no meter can be made of; nothing is opened."""
        ...


@runtime_checkable
class ChecksDevices(Protocol):
    """What a plugin may offer besides, where loading a system in vain can be spared."""

    def check_device(self, device: str) -> None:
        """Refuse a device that ``open`` would refuse; quick, and nothing is held."""
        ...


def meter_names() -> tuple[str, ...]:
    """Every meter that can be asked for, ours and other people's; nothing is imported."""
    return (AUTO, *plugin_names(METERS))


def require_meter(spec: str) -> None:
    """Refuse what no meter is called, and a file that none can be made of, before anything is loaded to be
    measured with it."""
    name, colon, variant = spec.partition(":")
    if name not in meter_names():
        raise unknown("meter", name, meter_names())
    if not colon:
        return
    plugin = _plugin(name)
    _variant(name, plugin, colon, variant)
    if _is_file(plugin, variant) and isinstance(plugin, ChecksFiles):
        plugin.check_file(variant)


def check_meter(spec: str, device: str) -> None:
    """Refuse what could not be opened for ``device``, as far as that is known in no time. ``auto`` can."""
    if spec == AUTO:
        return
    plugin = _plugin(spec.partition(":")[0])
    if isinstance(plugin, ChecksDevices):
        plugin.check_device(device)


def open_meter(spec: str, device: str) -> Meter:
    """The meter ``NAME[:variant]`` for work on ``device`` ("cpu", "cuda:0").

    ``auto`` is the sensor of the device where it can be read, else the model of this CPU.
    """
    if spec == AUTO:
        return automatic_meter(device, open_meter)
    require_meter(spec)
    name, colon, variant = spec.partition(":")
    plugin = _plugin(name)
    return plugin.open(_variant(name, plugin, colon, variant), device)


def automatic_meter(device: str, open_named: Callable[[str, str], Meter]) -> Meter:
    """The one sensor that ``SENSORS`` names for the kind of ``device``, else the model of this CPU.

    No other is tried: which meter it was must not depend on what else happens to be installed. (A board of
    AMD is "cuda" too; its meter, zeus, has to be asked for.) Falling back is not silent: the profile and
    every report carry the meter's name, provenance and source.
    """
    sensor = SENSORS.get(device.partition(":")[0])
    if sensor is not None:
        with suppress(SensorAbsent, SensorUnusable):
            return open_named(sensor, device)
    return open_named("modelled", device)


def _plugin(name: str) -> MeterPlugin:
    if name == AUTO:
        raise MagnetonError(f"meter {AUTO!r} has no variants", hint=f"use --meter {AUTO}")
    return cast("MeterPlugin", load_plugin(METERS, name))


def _variant(name: str, plugin: MeterPlugin, colon: str, variant: str) -> str:
    """The one that was asked for, or the default; "" for a meter that has none."""
    if not plugin.variants:
        if colon:
            raise MagnetonError(
                f"meter {name!r} has no variants, not {variant!r}", hint=f"use --meter {name}"
            )
        return ""
    if colon and variant not in plugin.variants and not _is_file(plugin, variant):
        raise unknown(f"variant of meter {name!r}", variant, plugin.variants)
    return variant if colon else plugin.variants[0]


def _is_file(plugin: MeterPlugin, variant: str) -> bool:
    return variant.endswith(Path(FILE).suffix) and FILE in plugin.variants
