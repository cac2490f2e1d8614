"""Nothing large is installed unless the user has agreed to it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill

from magneton.envs.place import Environment
from magneton.errors import MagnetonError

ASKED_ABOVE_BYTES = 500_000_000
WIDTH = 80
INDENT = 12


def _silent(text: str) -> None:
    del text


def _nobody() -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """How to talk to the user: ``say`` tells, ``answer`` waits for a line where ``interactive``."""

    yes: bool = False
    interactive: bool = False
    say: Callable[[str], None] = _silent
    answer: Callable[[], str] = _nobody

    def allow(self, environments: Sequence[Environment]) -> None:
        """Say what is going to be installed; ask if it is large. Without consent, a MagnetonError."""
        for environment in environments:
            self.say(offer(environment))
        sizes_bytes = [environment.variant.size_bytes for environment in environments]
        small = all(each is not None for each in sizes_bytes) and _sum(sizes_bytes) <= ASKED_ABOVE_BYTES
        if small or not environments:
            return
        names = tuple(dict.fromkeys(environment.system for environment in environments))
        commands = [f"install {name}" for name in names]
        self.confirm(f"install {' and '.join(names)} ({about(sizes_bytes)})?", *commands)

    def confirm(self, question: str, *commands: str) -> None:
        """Ask, unless the answer was given in advance, as it can be with each of ``commands``."""
        if self.yes:
            return
        if not self.interactive:
            agreed = " && ".join(f"magneton systems {command} --yes" for command in commands)
            raise MagnetonError(
                f"{question.removesuffix('?')}: nobody can be asked here",
                hint=f"agree beforehand with --yes, or with: {agreed}",
            )
        self.say(f"{question} [y/N]")
        if self.answer().strip().casefold() not in ("y", "yes"):
            raise MagnetonError("not agreed to: nothing was changed", hint="answer y, or give --yes")


def offer(environment: Environment) -> str:
    """What is installed, how large it is and where it goes."""
    variant = environment.variant
    packages = dict.fromkeys(package for step in variant.installation() for package in step.install)
    facts = {
        "packages": f"{_shortened(', '.join(packages))}, and what they need",
        "size": f"{about([variant.size_bytes])}, loaded by pip from where its settings say",
        "place": str(environment.folder),
        **({"note": variant.note} if variant.note else {}),
    }
    head = f"{environment.system} gets an environment of its own, for {environment.kind}:"
    return "\n".join([head, *(_fact(name, text) for name, text in facts.items())])


def about(sizes_bytes: Sequence[int | None]) -> str:
    """A size for people, of an installation that is only known roughly."""
    if None in sizes_bytes:
        return "of unknown size"
    return f"about {_sum(sizes_bytes) / 1e9:.1f} GB"


def _sum(sizes_bytes: Sequence[int | None]) -> int:
    return sum(size for size in sizes_bytes if size is not None)


def _fact(name: str, text: str) -> str:
    """Within the width of any terminal, but for a path that is longer."""
    return fill(
        text,
        WIDTH,
        initial_indent=f"  {name:<{INDENT - 2}}",
        subsequent_indent=" " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _shortened(text: str, characters: int = 160) -> str:
    return text if len(text) <= characters else f"{text[:characters].rpartition(',')[0]} and more"
