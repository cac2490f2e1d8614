"""From the names in a command to the classes behind them, importing those and nothing else."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from magneton.errors import MagnetonError
from magneton.plugins import SYSTEMS, load_plugin
from magneton.record.tracer import Tracer
from magneton.record.windows import nothing_to_wait_for
from magneton.systems.running import RunningSystem

TRACERS = {"torch": "magneton.record.torch.tracer:TorchTracer"}
SYNCHRONISERS = {"torch": "magneton.record.torch.tracer:synchronise"}


def open_system(name: str) -> RunningSystem:
    """The adapter called ``name``, or the one that ``module:Class`` points at, not yet loaded."""
    kind = _imported(name) if ":" in name else load_plugin(SYSTEMS, name)
    return cast(RunningSystem, kind())


def open_tracer(framework: str, clock_s: Callable[[], float]) -> Tracer:
    """The tracer for ``framework``; an adapter for another one says ``module:Class``. ``clock_s`` is zero at
    the start of the recording."""
    place = TRACERS.get(framework, framework)
    if ":" not in place:
        raise MagnetonError(
            f"no tracer for the framework {framework!r}",
            hint=f"known: {', '.join(TRACERS)}; an adapter may name its own as module:Class",
        )
    return cast(Tracer, _imported(place)(clock_s=clock_s))


def synchroniser(framework: str) -> Callable[[], None]:
    """What waits for the work that a system of this framework has queued on a device."""
    place = SYNCHRONISERS.get(framework)
    return _imported(place) if place else nothing_to_wait_for


def _imported(place: str) -> Callable[..., Any]:
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
