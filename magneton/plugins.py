"""Plugins: meters and systems, ours and other people's, found by name through one door.

Entry points are the door. A worker, though, may run in an interpreter where magneton is a folder on the
path and not an installed distribution: there is no metadata then, so the names of our own plugins are
also written down here (a test holds this table and pyproject.toml together).
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from magneton.errors import MagnetonError
from magneton.names import unknown

SYSTEMS = "magneton.systems"
METERS = "magneton.meters"

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    SYSTEMS: {
        "transformers": "magneton.systems.transformers:TransformersSystem",
        "torch": "magneton.systems.plain_torch:PlainTorchSystem",
        "callable": "magneton.systems.callable:CallableSystem",
        "vllm": "magneton.systems.vllm.system:VllmSystem",
        "sglang": "magneton.systems.sglang.system:SglangSystem",
    },
    METERS: {
        "modelled": "magneton.meters.modelled:ModelledMeter",
        "counted": "magneton.meters.counted:CountedMeter",
        "nvml": "magneton.meters.nvml:NvmlMeter",
        "rapl": "magneton.meters.rapl:RaplMeter",
        "zeus": "magneton.meters.zeus:ZeusMeter",
    },
}


def plugin_names(group: str) -> tuple[str, ...]:
    """The names offered in ``group``, without importing any of them."""
    return tuple(sorted({*BUILT_IN.get(group, {}), *entry_points(group=group).names}))


def load_plugin(group: str, name: str) -> Any:
    """Import the one plugin called ``name`` in ``group``, and nothing else."""
    offers = {offer.value for offer in entry_points(group=group, name=name)}
    if name in BUILT_IN.get(group, {}):
        offers.add(BUILT_IN[group][name])
    if not offers:
        raise unknown(f"{group.rpartition('.')[2].removesuffix('s')}", name, plugin_names(group))
    if len(offers) > 1:
        raise MagnetonError(
            f"{name!r} in {group} is offered more than once: {', '.join(sorted(offers))}",
            hint="uninstall the package that you do not want",
        )
    module, _, attribute = offers.pop().partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == module.partition(".")[0]:
            raise
        raise MagnetonError(
            f"{name!r} needs the package {error.name}, which is not installed",
            hint=f"pip install {error.name}",
        ) from error
