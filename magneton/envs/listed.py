"""Systems and their environments as plain data, for the report."""

from collections.abc import Mapping
from dataclasses import dataclass

from magneton.envs.place import EnvironmentState
from magneton.system import Kind, SystemDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSystem:
    """A system, the version of it that this interpreter has (None where it has none), and its environments.

    ``here``: the kinds of device for which this interpreter has all that is required.
    """

    name: str
    installed: str | None
    here: tuple[Kind, ...]
    environments: tuple[EnvironmentState, ...]
    description: SystemDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSystems:
    systems: tuple[ListedSystem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSystem:
    """A system, and where it would run if nothing else was asked for.

    ``python`` is None where its environment has yet to be made. ``versions`` are what is found in it.
    """

    system: ListedSystem
    device: str
    python: str | None
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedEnvironments:
    """What is gone, and the room that it took."""

    folders: tuple[str, ...]
    size_bytes: int
