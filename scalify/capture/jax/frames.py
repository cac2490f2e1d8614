"""Which of the user's lines called an equation."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scalify.load.stablehlo.listing import Place

_OURS = str(Path(__file__).parents[1])


@cache
def _foreign() -> tuple[str, ...]:
    """Folders whose frames are JAX's own work."""
    specs = (find_spec(name) for name in ("jax", "jaxlib"))
    return tuple(str(Path(spec.origin).parent) for spec in specs if spec is not None and spec.origin)


def user_frames(equation: Any) -> Place:
    """Outermost first: what lies between our own call of JAX and the equation, without JAX's own frames."""
    traceback = equation.source_info.traceback
    if traceback is None:
        return ()
    found: list[tuple[str, int, str]] = []
    for frame in traceback.frames:
        if frame.file_name.startswith(_OURS):
            break
        if not frame.file_name.startswith(_foreign()) and not frame.file_name.startswith("<"):
            found.append((frame.file_name, frame.line_num, frame.function_name))
    return tuple(reversed(found))
