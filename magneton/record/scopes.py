"""What a system is doing around its model, told by which of its functions is running.

In: the table of an adapter (``roots()["scopes"]``), from functions by qualified name to scopes in plain
words, and a frame. Out: the scope of the innermost frame that the table knows, "" where it knows none.
"""

from collections.abc import Mapping
from types import CodeType, FrameType

TO_HOST = "host synchronisation"
SCOPES_ROOT = "scopes"  # the root that maps qualified names of functions to scopes


class Scopes:
    """The table, with what was looked up: code objects are slow to hash, so they are known by identity."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self._table = table
        self._known: dict[int, tuple[CodeType, str | None]] = {}

    def of(self, frame: FrameType | None, outermost: FrameType | None = None) -> str:
        """The scope that ``frame`` runs in, looking no further out than ``outermost``."""
        known = self._known
        while self._table and frame is not None:
            code = frame.f_code
            if id(code) not in known:  # keeping the code keeps its identity from being used again
                known[id(code)] = code, self._table.get(code.co_qualname)
            scope = known[id(code)][1]
            if scope is not None:
                return scope
            if frame is outermost:
                break
            frame = frame.f_back
        return ""
