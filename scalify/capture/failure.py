"""What to say when the user's own model did not get through PyTorch."""

import traceback
from pathlib import Path

import torch

from scalify.errors import CaptureFailed

_OURS = Path(__file__).parent
_TORCH = Path(torch.__file__).parent


class NotThroughPyTorch(CaptureFailed):
    """PyTorch raised it. What we refuse ourselves says more."""


def capture_failed(error: Exception, *, what: str, hint: str) -> NotThroughPyTorch:
    """The report's first line, and the last line of the user's that was running."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
    return NotThroughPyTorch(f"{what}: {reason}{_where(error)}", hint=hint)


def located(error: CaptureFailed) -> CaptureFailed:
    """With the last line of the user's that was running when we refused to go on."""
    return CaptureFailed(f"{error}{_where(error)}", hint=error.hint)


def _where(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not _inside(frame.filename)]
    return f" (at {theirs[-1].filename}:{theirs[-1].lineno})" if theirs else ""


def _inside(file: str) -> bool:
    """Whether a frame is PyTorch's, ours, or of no file."""
    return file.startswith("<") or Path(file).is_relative_to(_TORCH) or Path(file).is_relative_to(_OURS)
