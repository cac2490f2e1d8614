"""The interpreters that systems are run in, made where they are missing, and kept while they are used."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from sys import executable

from magneton.envs.build import build, check_possible, check_room
from magneton.envs.consent import Conversation
from magneton.envs.interpreter import Named, check_interpreter, runs_in_own_environment
from magneton.envs.lock import locked
from magneton.envs.place import Environment, environment_for, environments_folder, is_ready
from magneton.errors import MagnetonError
from magneton.record.progress import Progress
from magneton.system import Kind, SystemDescription


@contextmanager
def interpreters(
    systems: Mapping[str, SystemDescription],
    kind: Kind,
    named: Named,
    conversation: Conversation,
    progress: Progress,
) -> Generator[Mapping[str, Path], None, None]:
    """The interpreter of each system. None of their environments is removed before the block is left.

    In this order: the one that ``--python`` names, the running one if it has what the system requires, an
    environment of the system's own. All that are missing are agreed to before the first is made.
    """
    _refuse_idle(named, systems)
    chosen: dict[str, Path] = {}
    needed: dict[str, Environment] = {}
    for system, description in systems.items():
        python = named.of(system)
        if python is not None:
            check_interpreter(python, system, description, kind)
            chosen[system] = python
        elif runs_in_own_environment(system, description, kind):
            needed[system] = environment_for(system, description, kind)
        else:
            chosen[system] = Path(executable)
    agree(needed.values(), conversation)
    with ExitStack() as uses:
        for system, environment in needed.items():
            chosen[system] = uses.enter_context(in_use(environment, conversation, progress))
        yield chosen


def variables_for(python: Path) -> Mapping[str, str]:
    """What a worker needs beside it. In an environment of ours modules are compiled once, also where
    PYTHONDONTWRITEBYTECODE is set, as in many containers: importing an engine takes twice as long then."""
    ours = environments_folder() in python.parents
    return {"PYTHONDONTWRITEBYTECODE": ""} if ours else {}


def agree(environments: Iterable[Environment], conversation: Conversation) -> None:
    """Find out what is missing, whether it can be made at all, and whether the user wants it."""
    missing = tuple(environment for environment in environments if not is_ready(environment))
    for environment in missing:
        check_possible(environment)
    check_room(missing)
    conversation.allow(missing)


@contextmanager
def in_use(
    environment: Environment, conversation: Conversation, progress: Progress
) -> Generator[Path, None, None]:
    """The environment's interpreter, made first if it is missing. It cannot be removed meanwhile."""

    def waiting() -> None:
        conversation.say(f"another magneton is installing {environment.system}: waiting for it")

    while True:
        with locked(environment.lock, shared=True, waiting=waiting):
            if is_ready(environment):
                yield environment.python
                return
        with locked(environment.lock, shared=False, waiting=waiting) as lock:
            if not is_ready(environment):
                build(environment, lock, progress)


def _refuse_idle(named: Named, systems: Mapping[str, SystemDescription]) -> None:
    for system in named.by_system:
        if system not in systems:
            raise MagnetonError(
                f"--python names an interpreter for {system}, which is not run",
                hint=f"what is run: {', '.join(systems)}",
            )
