"""Lets torch.export note all of the user's lines around an operator.

By itself it keeps those in functions called ``forward``, and says that an operator within a model's other
functions stands where ``forward`` calls them.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from traceback import FrameSummary, StackSummary

from torch.fx.proxy import TracerBase

from scalify.load.torch_export.sites import is_users

_OURS = str(Path(__file__).parent)


@contextmanager
def all_lines() -> Generator[None]:
    """While this is open, nodes are recorded with every frame of the user's since we called the model."""
    # PyTorch says of this method that it can be overridden; torch.export makes its tracers itself.
    before = TracerBase._filter_traceback_frames  # pyright: ignore[reportPrivateUsage]
    TracerBase._filter_traceback_frames = _users  # pyright: ignore[reportPrivateUsage]
    try:
        yield
    finally:
        TracerBase._filter_traceback_frames = before  # pyright: ignore[reportPrivateUsage]


def _users(self: TracerBase, user_stack_summary: StackSummary) -> StackSummary:
    kept: list[FrameSummary] = []
    for frame in user_stack_summary:
        if frame.filename.startswith(_OURS):
            kept.clear()
        elif is_users(frame.filename):
            kept.append(frame)
    return StackSummary.from_list(kept)
