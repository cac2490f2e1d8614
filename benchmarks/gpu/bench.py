"""What a validation runs, and on what: real kernels on a board, or simulated work in a rehearsal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from magneton.meters.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Something that is executed again and again. ``run(times)`` queues it and does not wait."""

    name: str
    what: str  # shapes and formats, for the reader of the result
    run: Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Two ways to do the same work, and by how much the costly one is said to cost more, end to end."""

    name: str  # "c8"
    title: str
    costly: Subject
    lean: Subject
    published: float


class Bench(Protocol):
    """A board, work for it, and the time in which both live."""

    device: str  # as the framework calls it: "cuda:0"
    clock: Clock
    shortest: str  # of the operators: calling it takes longer than executing it

    def machine(self) -> Mapping[str, str]:
        """Names and versions. After the call the board is in the state in which work finds it."""
        ...

    def operators(self) -> Mapping[str, Callable[[], Subject]]:
        """Makers by name, so that one operator's tensors are gone before the next one's are made."""
        ...

    def cases(self) -> Mapping[str, Callable[[], Case]]: ...

    def synchronise(self) -> None:
        """Until the board has done all that was queued."""
        ...
