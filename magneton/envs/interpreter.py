"""Interpreters that exist already: which was named for a system, and whether one has what it requires."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from magneton.errors import MagnetonError
from magneton.names import unknown
from magneton.system import CALLABLE, Kind, SystemDescription, installed_version
from magneton.worker.boot import NEEDED

ANSWERS_WITHIN_S = 60.0
ASK = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps({"python": ".".join(map(str, sys.version_info[:3])), **found}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What ``--python`` said: one interpreter for all systems, or some for one system each."""

    for_all: Path | None = None
    by_system: Mapping[str, Path] = field(default_factory=dict[str, Path])

    def of(self, system: str) -> Path | None:
        return self.by_system.get(system, self.for_all)


def named_interpreters(texts: Sequence[str], systems: Iterable[str]) -> Named:
    """Each text is PATH, or NAME=PATH with the name of a system. A path may hold "=" after its first "/"."""
    known = tuple(systems)
    for_all: Path | None = None
    by_system: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or "/" in name:
            if for_all is not None:
                raise MagnetonError("--python is given twice", hint="write NAME=PATH for one system only")
            for_all = _path(text)
            continue
        if name not in known:
            raise unknown("system in --python", name, known)
        if name in by_system:
            raise MagnetonError(f"--python is given twice for {name}", hint="keep one of them")
        by_system[name] = _path(path)
    return Named(for_all=for_all, by_system=by_system)


def runs_here(description: SystemDescription, kind: Kind) -> bool:
    """Whether the running interpreter has what the system requires."""
    if kind == "cuda" and "+cpu" in (installed_version("torch") or "") and "torch" in description.frameworks:
        return False
    required = requirements(description.variants[kind].requirements)
    return not lacking(required, _found_here(required))


def runs_in_own_environment(system: str, description: SystemDescription, kind: Kind) -> bool:
    """Whether an environment is made for it. A callable is the user's own code: it runs where they are."""
    return system != CALLABLE and not runs_here(description, kind)


def check_interpreter(python: Path, system: str, description: SystemDescription, kind: Kind) -> None:
    """Refuse one that does not start, whose Python cannot run the system, or that has another version of the
    system than its adapter is written for. It is asked itself, which takes no import of the system."""
    packages = tuple(dict.fromkeys((description.package_on(kind), description.package)))
    found = versions_in(python, packages)
    check_python(found["python"], str(python), system, description.variants[kind].python)
    if description.supports is None:
        return
    advice = f"name another interpreter with --python {system}=PATH"
    if system != CALLABLE:
        advice = f"leave out --python and run: magneton systems install {system}; or {advice}"
    package = next((name for name in packages if name in found), None)
    if package is None:
        raise MagnetonError(f"{python} has no {' or '.join(packages)}", hint=advice)
    if not _meets(found[package], _specifier(description.supports, system, package)):
        raise MagnetonError(
            f"{python} has {package} {found[package]}; magneton's adapter for {system} is written for"
            f" {package} {description.supports}",
            hint=advice,
        )


def check_python(found: str, what: str, system: str, specifier: str | None) -> None:
    """Refuse Python ``found`` where the system's adapter, or ours, cannot run in it."""
    for needed in (f">={NEEDED[0]}.{NEEDED[1]}", specifier or ""):
        if not _specifier(needed, system, "Python").contains(found, prereleases=True):
            raise MagnetonError(
                f"{system} needs Python {needed}; {what} is {found}",
                hint=f"name an interpreter that fits: --python {system}=PATH",
            )


def versions_in(python: Path, packages: Iterable[str]) -> Mapping[str, str]:
    """The version of each of ``packages`` that an interpreter has, and as "python" its own."""
    try:
        asked = subprocess.run(
            [python, "-c", ASK, *packages],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=ANSWERS_WITHIN_S,
            check=True,
        )
        answer = json.loads(asked.stdout.splitlines()[-1])
        return {str(name): str(found) for name, found in answer.items()}
    except OSError as error:
        raise _no_interpreter(python, f"cannot start: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise _no_interpreter(python, f"did not answer within {ANSWERS_WITHIN_S:g} s") from error
    except (subprocess.CalledProcessError, ValueError, IndexError, AttributeError) as error:
        raise _no_interpreter(python, "does not answer as a Python interpreter does") from error


def requirements(texts: Iterable[str]) -> tuple[Requirement, ...]:
    """Those of ``texts`` that apply on this machine, understood."""
    found: list[Requirement] = []
    for text in texts:
        try:
            found.append(Requirement(text))
        except InvalidRequirement as error:
            raise MagnetonError(
                f"{text!r} is no requirement: {str(error).splitlines()[0]}",
                hint="write it as pip takes it, for instance name>=1.2",
            ) from error
    return tuple(each for each in found if each.marker is None or each.marker.evaluate())


def lacking(required: Iterable[Requirement], found: Mapping[str, str]) -> tuple[str, ...]:
    """Which of ``required`` the versions ``found`` do not meet."""
    return tuple(str(each) for each in required if not _meets(found.get(each.name), each.specifier))


def _specifier(text: str, system: str, what: str) -> SpecifierSet:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise MagnetonError(
            f"the description of {system} asks for {what} {text!r}", hint="write it as >=3.11,<3.14"
        ) from error


def _meets(found: str | None, specifier: SpecifierSet) -> bool:
    try:
        return found is not None and specifier.contains(found, prereleases=True)
    except InvalidVersion:
        return False


def _found_here(required: Iterable[Requirement]) -> Mapping[str, str]:
    found = {each.name: installed_version(each.name) for each in required}
    return {name: version for name, version in found.items() if version is not None}


def _path(text: str) -> Path:
    """Not resolved: the interpreter of a virtual environment is a link, and its place is what counts."""
    if not text:
        raise MagnetonError("--python names no interpreter", hint="write --python PATH or NAME=PATH")
    path = Path(text).expanduser()
    if not path.is_file():
        raise _no_interpreter(path, "does not exist" if not path.exists() else "is no file")
    return path.absolute()


def _no_interpreter(python: Path, what: str) -> MagnetonError:
    return MagnetonError(
        f"{python} {what}",
        hint=f"--python wants the interpreter of a system's own environment, as {sys.executable}",
    )
