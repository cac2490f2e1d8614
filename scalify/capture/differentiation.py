"""Whether a module asks for gradients itself.

Under torch.export there are none, and it says nothing where they are missing.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from torch import autograd


@dataclass(slots=True)
class Noticed:
    """``happened`` once a backward pass was asked for."""

    happened: bool = False


class _AsksForGradients(Exception):
    """The module cannot go on: there is nothing to differentiate."""


@contextmanager
def differentiation() -> Generator[Noticed]:
    """While this is open, a backward pass is noticed and not run."""
    noticed = Noticed()

    def engine(*_: Any, **__: Any) -> NoReturn:
        noticed.happened = True
        raise _AsksForGradients("the module runs a backward pass")

    # What ``loss.backward()`` and ``torch.autograd.grad`` both go through; hooks see only passes that run.
    before = autograd._engine_run_backward  # pyright: ignore[reportPrivateUsage]
    autograd._engine_run_backward = engine  # pyright: ignore[reportPrivateUsage]
    try:
        yield noticed
    finally:
        autograd._engine_run_backward = before  # pyright: ignore[reportPrivateUsage]
