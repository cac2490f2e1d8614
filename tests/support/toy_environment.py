"""A system that is installed in a second, and a program that installs it: ``python toy_environment.py``."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from magneton.envs.consent import Conversation
from magneton.envs.place import Environment, environment_for
from magneton.envs.use import in_use
from magneton.errors import MagnetonError
from magneton.record.progress import NoProgress
from magneton.system import Step, SystemDescription, Variant

PIP_SETTINGS = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT", "PIP_NO_CACHE_DIR")


def toy_variant(*install: str, requirements: Iterable[str] | None = None) -> Variant:
    wanted = install or ("toyserver==1.0",)
    return Variant(requirements=tuple(requirements or wanted), steps=(Step(install=wanted),), size_bytes=1000)


def toy_description(variant: Variant | None = None) -> SystemDescription:
    chosen = variant or toy_variant()
    return SystemDescription(
        description="a toy",
        package="toyserver",
        frameworks=("torch",),
        phases=("prefill",),
        variants={"cpu": chosen, "cuda": replace(chosen, note="for a board")},
    )


def toy_place(variant: Variant | None = None) -> Environment:
    return environment_for("toy", toy_description(variant), "cpu")


def pip_environment(cache: Path, links: str) -> dict[str, str]:
    """Settings under which pip sees what lies at ``links`` and nothing else."""
    return {
        "MAGNETON_CACHE": str(cache),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": links,
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_RETRIES": "0",
    }


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    conversation = Conversation(say=_say)
    try:
        with in_use(toy_place(), conversation, NoProgress()) as python:
            _say(f"ready: {python}")
    except MagnetonError as error:
        sys.exit(f"{type(error).__name__}: {error}\n{error.hint}")


if __name__ == "__main__":
    main()
