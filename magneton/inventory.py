"""The systems as they are on this machine: listed, looked at, installed, removed.

In: names. Out: plain data for the report. Nothing of a system is imported, and no interpreter is started but
by an installation.
"""

import sys
from collections.abc import Mapping

from magneton.configs import config_names
from magneton.envs.consent import Conversation
from magneton.envs.interpreter import Named, requirements, runs_here, runs_in_own_environment
from magneton.envs.listed import ListedSystem, ListedSystems, RemovedEnvironments, ShownSystem
from magneton.envs.place import environment_for, folders_of, states
from magneton.envs.remove import remove, size_bytes
from magneton.envs.use import interpreters
from magneton.errors import MagnetonError
from magneton.names import unknown
from magneton.record.progress import Progress
from magneton.settings import check_device, device_for, kind_of
from magneton.system import Kind, SystemDescription, describe, installed_version, system_descriptions

NOBODY = Named()


def list_systems() -> ListedSystems:
    """Every described system, with what is installed of it."""
    described = system_descriptions()
    return ListedSystems(systems=tuple(_listed(name, described[name]) for name in sorted(described)))


def show_system(name: str) -> ShownSystem:
    """One system, and where it would run."""
    description = describe(name)
    device = device_for([name], None, NOBODY)
    kind = kind_of(device)
    system = _listed(name, description)
    if not runs_in_own_environment(name, description, kind):
        versions = _versions_here(description, kind)
        return ShownSystem(system=system, device=device, python=sys.executable, versions=versions)
    environment = environment_for(name, description, kind)
    state = next(each for each in system.environments if each.folder == str(environment.folder))
    python = str(environment.python) if state.state == "ready" else None
    return ShownSystem(system=system, device=device, python=python, versions=state.versions)


def install_system(
    name: str, device: str | None, conversation: Conversation, progress: Progress
) -> ShownSystem:
    """Make the environment of a system, unless it is there or this interpreter will do."""
    check_device(device)
    systems = {name: describe(name)}
    kind = kind_of(device_for([name], device, NOBODY))
    with interpreters(systems, kind, NOBODY, conversation, progress):
        return show_system(name)


def remove_environments(
    name: str | None, everything: bool, conversation: Conversation
) -> RemovedEnvironments:
    """Leave nothing of a system's environments, or of all environments."""
    if (name is None) != everything:
        raise MagnetonError("remove what?", hint="write magneton systems remove NAME, or --all")
    if name is not None and name not in config_names("systems"):
        raise unknown("system", name, config_names("systems"))
    folders = folders_of(name)
    freed_bytes = size_bytes(folders)
    if folders:
        what = f"{name or 'all'}: {len(folders)} environment(s), {freed_bytes / 1e9:.1f} GB"
        conversation.confirm(f"remove {what}?", f"remove {name or '--all'}")
    remove(folders)
    return RemovedEnvironments(folders=tuple(map(str, folders)), size_bytes=freed_bytes)


def _listed(name: str, description: SystemDescription) -> ListedSystem:
    return ListedSystem(
        name=name,
        installed=installed_version(description.package),
        here=tuple(kind for kind in description.variants if runs_here(description, kind)),
        environments=states(name, description),
        description=description,
    )


def _versions_here(description: SystemDescription, kind: Kind) -> Mapping[str, str]:
    names = (
        description.package_on(kind),
        *(each.name for each in requirements(description.variants[kind].requirements)),
    )
    found = {name: installed_version(name) for name in names}
    return {name: version for name, version in found.items() if version is not None}
