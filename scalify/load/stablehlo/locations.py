"""Where an operation comes from, read from the print of its location.

JAX nests them: a scope around ``callsite(inner at outer)`` of functions' names around files. So strings come
innermost frame first, and a string right before a file names its function.
"""

import re
from dataclasses import dataclass

from scalify.load.hlo.program import Metadata
from scalify.load.stablehlo.listing import Listing

_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"(:(\d+):\d+(?: to (?:\d+)?:\d+)?|\(|)')
_ESCAPE = re.compile(r"\\(.)")
MAX_FRAMES = 256
_OF_THE_TEXT = "-"


@dataclass(frozen=True, slots=True)
class Origin:
    """Frames outermost first, and the scope, as far as a location tells them."""

    frames: tuple[tuple[str, int, str], ...] = ()
    scope: str = ""


def origin(location: str) -> Origin:
    """What the print of a location says."""
    frames: list[tuple[str, int, str]] = []
    names: list[str] = []
    function = ""
    for text, kind, line in _PIECE.findall(location):
        word = _ESCAPE.sub(r"\1", text)
        if line:
            if len(frames) < MAX_FRAMES and len(line) < 10:
                frames.append((_printable(word), int(line), _printable(function)))
            function = ""
        else:
            names.append(word)
            function = word if kind == "(" else ""
    functions = {name for _, _, name in frames}
    scope = names[0] if names and names[0] not in functions else ""
    return Origin(tuple(reversed(frames)), _printable(scope))


def name_in(location: str) -> str:
    """The name that a location gives a value; "" where it gives a place."""
    found = origin(location)
    return "" if found.frames else found.scope


class Places:
    """Metadata of locations; equal ones are read once."""

    def __init__(self, listing: Listing, file: str) -> None:
        self._listing = listing
        self._file = file
        self._known: dict[tuple[str, str], Metadata] = {}

    def of(self, location: str, around: Metadata | None) -> Metadata:
        """The metadata of an operation; ``around`` is that of the call it is inlined from."""
        outer = around.op_name if around else ""
        key = (location, outer)
        if key not in self._known:
            found = origin(location)
            own = found.scope.rpartition("/")[0]
            scope = "/".join(part for part in (outer, own) if part)
            frames = [
                (self._file if file == _OF_THE_TEXT else file, line, function)
                for file, line, function in found.frames
            ]
            self._known[key] = self._listing.placed(tuple(frame for frame in frames if frame[0]), scope)
        made = self._known[key]
        return around if around is not None and not made.stack_frame else made


def _printable(text: str) -> str:
    return text if text.isprintable() else repr(text)
