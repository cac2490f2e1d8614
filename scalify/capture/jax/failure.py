"""What to say when JAX could not trace the user's function."""

import traceback
from pathlib import Path

import jax

from scalify.errors import CaptureFailed

_OURS = Path(__file__).parent
_JAX = Path(jax.__file__).parent


def trace_failed(error: Exception) -> CaptureFailed:
    """The report's first line, and the last line of the user's that was running."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<")
        and not Path(frame.filename).is_relative_to(_JAX)
        and not Path(frame.filename).is_relative_to(_OURS)
    ]
    where = f" (at {frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    reason = f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
    return CaptureFailed(
        f"JAX cannot trace the function: {reason}{where}",
        hint="run jax.make_jaxpr(function)(*args) to see the whole report",
    )
