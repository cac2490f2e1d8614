"""Where the environment of a system lies, and what is known of it without starting anything."""

import hashlib
import json
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from magneton.cache import cache_folder
from magneton.system import Kind, Step, SystemDescription, Variant

MARKER = "magneton-ready.json"
MARKER_SCHEMA = "magneton-environment"
LARGEST_MARKER_BYTES = 1_000_000
DIGEST_CHARACTERS = 12
BESIDE = (".lock", ".log", ".downloads", ".tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The one environment that a system's description asks for on one kind of device."""

    system: str
    kind: Kind
    variant: Variant
    package: str
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def lock(self) -> Path:
        return _beside(self.folder, ".lock")

    @property
    def log(self) -> Path:
        return _beside(self.folder, ".log")

    @property
    def downloads(self) -> Path:
        return _beside(self.folder, ".downloads")

    @property
    def temporary(self) -> Path:
        return _beside(self.folder, ".tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentState:
    """``outdated``: made for another release of magneton or of Python; nothing uses it any more.

    Size and versions are None and empty where it is not whole.
    """

    kind: Kind
    folder: str
    state: Literal["ready", "not made", "unfinished", "outdated"]
    size_bytes: int | None = None
    versions: Mapping[str, str]


def environments_folder() -> Path:
    return cache_folder() / "environments"


def environment_for(system: str, description: SystemDescription, kind: Kind) -> Environment:
    """Another pin, another step or another Python is another environment."""
    variant = description.variants[kind]
    folder = environments_folder() / f"{system}-{kind}-{digest(variant.installation())}"
    return Environment(
        system=system, kind=kind, variant=variant, package=description.package_on(kind), folder=folder
    )


def digest(steps: tuple[Step, ...]) -> str:
    """Of all that decides what the installed environment is."""
    acts = [[step.install, step.remove, step.with_dependencies] for step in steps]
    content = [acts, sys.implementation.cache_tag, sys.platform, platform.machine()]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:DIGEST_CHARACTERS]


def is_ready(environment: Environment) -> bool:
    """Whether it was finished, and the Python that it was made with is still there."""
    return _marked(environment.folder) is not None and environment.python.exists()


def states(system: str, description: SystemDescription) -> tuple[EnvironmentState, ...]:
    """The environment of each kind of device, made or not, and whatever else of this system is left."""
    current = {kind: environment_for(system, description, kind) for kind in description.variants}
    wanted = {environment.folder: environment for environment in current.values()}
    others = [folder for folder in folders_of(system) if folder not in wanted and folder.is_dir()]
    return (
        *(_state(each.folder, each.kind, usable=is_ready(each)) for each in wanted.values()),
        *(_state(folder, kind_of(folder), usable=False) for folder in others),
    )


def folders_of(system: str | None) -> tuple[Path, ...]:
    """Every environment of ``system``, or of all, of which anything is left: a log, a lock, a part."""
    name = "[a-z0-9_.-]+?" if system is None else re.escape(system)
    pattern = re.compile(
        rf"({name}-(?:{'|'.join(get_args(Kind))})-[0-9a-f]{{{DIGEST_CHARACTERS}}})(\.[a-z]+)?"
    )
    root = environments_folder()
    names = [place.name for place in root.iterdir()] if root.is_dir() else []
    found = {match[1] for name in names if (match := pattern.fullmatch(name)) and match[2] in (None, *BESIDE)}
    return tuple(root / name for name in sorted(found))


def kind_of(folder: Path) -> Kind:
    return cast(Kind, folder.name.rsplit("-", 2)[1])


def parts_of(folder: Path) -> tuple[Path, ...]:
    """The environment and all that lies beside it, the lock last."""
    return (folder, *(_beside(folder, suffix) for suffix in reversed(BESIDE)))


def _state(folder: Path, kind: Kind, *, usable: bool) -> EnvironmentState:
    marked = _marked(folder)
    if marked is None:
        begun = folder.exists() or _beside(folder, ".downloads").exists()
        return EnvironmentState(
            kind=kind, folder=str(folder), state="unfinished" if begun else "not made", versions={}
        )
    return EnvironmentState(
        kind=kind,
        folder=str(folder),
        state="ready" if usable else "outdated",
        size_bytes=marked["size_bytes"],
        versions=marked["versions"],
    )


def _marked(folder: Path) -> Mapping[str, Any] | None:
    """What the marker says; None without one that can be read."""
    try:
        with (folder / MARKER).open("rb") as file:
            content = json.loads(file.read(LARGEST_MARKER_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("schema") != MARKER_SCHEMA:
        return None
    whole = isinstance(content.get("size_bytes"), int) and isinstance(content.get("versions"), dict)
    return content if whole else None


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(folder.name + suffix)
