"""From the names in a command to the classes behind them, importing those and nothing else."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import cast

from magneton.errors import MagnetonError
from magneton.plugins import SYSTEMS, load_plugin
from magneton.record.blocks import nothing_to_wait_for
from magneton.record.tracer import Tracer
from magneton.systems.running import RunningSystem

TRACERS = {"torch": "magneton.record.torch.tracer:TorchTracer"}


def open_system(name: str) -> RunningSystem:
    """The adapter called ``name``, or the one that ``module:Class`` points at, not yet loaded."""
    kind = _imported(name) if ":" in name else load_plugin(SYSTEMS, name)
    return cast(RunningSystem, kind())


def open_tracer(framework: str) -> Tracer:
    """The tracer for ``framework``; an adapter for another one says ``module:Class``."""
    place = TRACERS.get(framework, framework)
    if ":" not in place:
        raise MagnetonError(
            f"no tracer for the framework {framework!r}",
            hint=f"known: {', '.join(TRACERS)}; an adapter may name its own as module:Class",
        )
    return cast(Tracer, _imported(place)())


def synchroniser(framework: str, device: str) -> Callable[[], None]:
    """What waits for the work that was queued on ``device``."""
    if framework == "torch" and device.startswith("cuda"):
        return cast(Callable[[], None], sys.modules["torch"].cuda.synchronize)
    return nothing_to_wait_for


def _imported(place: str) -> Callable[[], object]:
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise MagnetonError(
            f"cannot import {place!r}: no module {error.name!r}",
            hint="write module:Class, with the module's folder on PYTHONPATH",
        ) from error
    except AttributeError as error:
        raise MagnetonError(
            f"{module} has no {attribute!r}", hint="write module:Class as the file spells it"
        ) from error
