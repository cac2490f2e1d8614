"""Make an environment: a virtual environment, its steps through pip, a check, and last the marker.

A virtual environment cannot be renamed (its scripts name their interpreter), so it is built in its place,
under the exclusive lock, and counts only once the marker is in it. Whatever happens before that leaves
nothing that could be used; what was downloaded stays for the next attempt.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import Version

from magneton.envs.causes import cause_of
from magneton.envs.downloads import discard_broken, keep, use_leftovers
from magneton.envs.interpreter import check_python, lacking, requirements, versions_in
from magneton.envs.place import MARKER, MARKER_SCHEMA, Environment
from magneton.envs.running import run_module
from magneton.errors import Interrupted, MagnetonError
from magneton.record.progress import Progress
from magneton.system import Step, installed_version
from magneton.worker.failure import ending
from magneton.worker.log import escaped, log_tail

CAN_INSTALL_ELSEWHERE = Version("22.3")
ROOM_PER_SIZE = 1.5  # what is downloaded lies beside what is installed for a while
LARGEST_SAID_BYTES = 1 << 20
DOING = re.compile(r"\s*(Collecting|Downloading|Processing|Using cached|Building wheel for|Installing)\b(.*)")
DOING_CHARACTERS = 44


def check_possible(environment: Environment) -> None:
    """Refuse before anything is made what cannot end well: Python, the description, room on the disk."""
    variant = environment.variant
    running = ".".join(map(str, sys.version_info[:3]))
    check_python(running, "the Python that runs magneton", environment.system, variant.python)
    for step in variant.installation():
        requirements((*step.install, *step.remove))
    check_room((environment,))


def check_room(environments: Sequence[Environment]) -> None:
    """Refuse what would fill the disk, as far as sizes are known. All of them lie in one folder."""
    sizes_bytes = [environment.variant.size_bytes or 0 for environment in environments]
    needed_bytes = ROOM_PER_SIZE * sum(sizes_bytes)
    if not needed_bytes:
        return
    nearest = next(place for place in environments[0].folder.parents if place.exists())
    free_bytes = shutil.disk_usage(nearest).free
    if free_bytes < needed_bytes:
        names = " and ".join(dict.fromkeys(environment.system for environment in environments))
        raise MagnetonError(
            f"{nearest} has {free_bytes / 1e9:.1f} GB left; installing {names} takes about"
            f" {needed_bytes / 1e9:.1f} GB, downloads included",
            hint="make room, or set MAGNETON_CACHE to a folder on another disk",
        )


def has_pip() -> bool:
    """Whether this interpreter's pip can install into another one."""
    found = installed_version("pip")
    return found is not None and Version(found) >= CAN_INSTALL_ELSEWHERE


def build(environment: Environment, lock: int, progress: Progress, *, lend_pip: bool | None = None) -> None:
    """Make it, from scratch but for what earlier attempts have downloaded. The caller holds ``lock``.

    ``lend_pip``: work with this interpreter's pip, if not given, where it has one; it takes seconds to
    install another.
    """
    check_possible(environment)
    finished = False
    try:
        shutil.rmtree(environment.folder, ignore_errors=True)
        environment.log.unlink(missing_ok=True)
        resumed = use_leftovers(environment.temporary, environment.downloads)
        Building(
            environment=environment,
            lock=lock,
            progress=progress,
            resumed=resumed,
            lends_pip=has_pip() if lend_pip is None else lend_pip,
        ).run()
        finished = True
    except KeyboardInterrupt:
        raise Interrupted(
            f"the installation of {environment.system} was stopped",
            hint="what was downloaded is kept: the same command goes on from there",
        ) from None
    except OSError as error:
        raise MagnetonError(
            f"cannot install {environment.system} into {environment.folder}: {error.strerror or error}",
            hint="make room there, or set MAGNETON_CACHE to a folder you can write",
        ) from error
    finally:
        _clean_up(environment, finished)


def _clean_up(environment: Environment, finished: bool) -> None:
    """Leave the environment if it is finished, else the downloads that are whole."""
    if not finished:
        with suppress(OSError):
            keep(environment.temporary, environment.downloads)
            discard_broken(environment.downloads, thorough=False)
    for folder in (environment.temporary, environment.downloads if finished else environment.folder):
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """One attempt. ``resumed``: there are downloads of earlier ones."""

    environment: Environment
    lock: int
    progress: Progress
    resumed: bool
    lends_pip: bool

    def run(self) -> None:
        steps = self.environment.variant.installation()
        self._tell(0, "making a virtual environment")
        bare = ["--without-pip"] if self.lends_pip else []
        self._module(Path(sys.executable), ("venv", *bare, str(self.environment.folder)), 0)
        for number, step in enumerate(steps, start=1):
            self._tell(number, "asking pip")
            self._pip(self._asked(step), number)
        self._tell(len(steps) + 1, "checking")
        self._mark(self._checked())

    def _asked(self, step: Step) -> tuple[str, ...]:
        if step.remove:
            return ("uninstall", "--yes", *step.remove)
        flags = ["--no-compile", "--no-warn-script-location"]
        if not step.with_dependencies:
            flags.append("--no-deps")
        if self.resumed:
            flags += ["--find-links", str(self.environment.downloads)]
        return ("install", *flags, *step.install)

    def _pip(self, asked: tuple[str, ...], number: int) -> None:
        python = self.environment.python
        if self.lends_pip:
            self._module(Path(sys.executable), ("pip", "--python", str(python), *asked), number)
        else:
            self._module(python, ("pip", *asked), number)

    def _module(self, python: Path, arguments: tuple[str, ...], number: int) -> None:
        environment = self.environment
        status = run_module(
            python,
            arguments,
            log=environment.log,
            temporary=environment.temporary,
            lock=self.lock,
            heard=lambda line: self._heard(line, number),
            looked=self._keep,
        )
        if status < 0:
            raise failed(environment, f"{arguments[0]} {ending(status)[0]}", cause=None)
        if status > 0:
            raise failed(
                environment, f"{arguments[0]} {ending(status)[0]}", cause=cause_of(_said(environment.log))
            )

    def _keep(self) -> None:
        keep(self.environment.temporary, self.environment.downloads)

    def _heard(self, line: str, number: int) -> None:
        if match := DOING.match(line):
            what = escaped(match[2].strip().removeprefix("collected packages:").strip())
            self._tell(number, f"{match[1].lower()} {what}"[:DOING_CHARACTERS])

    def _tell(self, number: int, doing: str) -> None:
        total = len(self.environment.variant.installation()) + 2
        self.progress.update(number, total, f"{self.environment.system}: {doing}")

    def _checked(self) -> Mapping[str, str]:
        """The versions in the new environment, which must be those that are required."""
        environment = self.environment
        required = requirements(environment.variant.requirements)
        found = versions_in(environment.python, (environment.package, *(each.name for each in required)))
        missing = lacking(required, found)
        if environment.package not in found:
            missing = (environment.package, *missing)
        if missing:
            raise failed(environment, f"after all steps it lacks {', '.join(missing)}", cause=None)
        return found

    def _mark(self, versions: Mapping[str, str]) -> None:
        folder = self.environment.folder
        content = {
            "schema": MARKER_SCHEMA,
            "version": 1,
            "system": self.environment.system,
            "kind": self.environment.kind,
            "versions": versions,
            "size_bytes": sum(_sizes_bytes(folder)),
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        aside = folder / f".{MARKER}.{time.monotonic_ns()}"
        aside.write_text(json.dumps(content))
        aside.rename(folder / MARKER)


def failed(environment: Environment, what: str, *, cause: tuple[str, str] | None) -> MagnetonError:
    """What pip's words amount to, with their end and their place."""
    log = f"the end of pip's log:\n{log_tail(environment.log)}\nthe whole log: {environment.log}"
    if cause is None:
        return MagnetonError(f"cannot install {environment.system}: {what}", hint=log)
    why, advice = cause
    return MagnetonError(f"cannot install {environment.system}: {escaped(why)}", hint=f"{advice}\n{log}")


def _said(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LARGEST_SAID_BYTES))
        return file.read().decode("utf-8", errors="replace")


def _sizes_bytes(folder: Path) -> Iterator[int]:
    for root, _, names in os.walk(folder):
        for name in names:
            yield Path(root, name).lstat().st_size
