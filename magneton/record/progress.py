"""How far a recording is, for whoever shows it."""

from typing import Protocol


class Progress(Protocol):
    def update(self, done: int, total: int, text: str) -> None:
        """``done`` of ``total`` stretches of work are over and ``text`` begins. ``total`` may grow."""
        ...


class NoProgress:
    """For callers that show nothing."""

    def update(self, done: int, total: int, text: str) -> None:
        del done, total, text
