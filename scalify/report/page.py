"""Text for a terminal: wrapped between words, set in, coloured where that is wanted, and safe to print.

A report is made at the end of a command that may have taken a second in all; a library for terminals would
add a fifth of that to say a dozen lines.
"""

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Literal

from scalify.report.escape import visible

Style = Literal["plain", "bold", "good", "bad", "doubt", "place", "quoted", "faint", "heading"]

NARROWEST = 80
LONGEST_PIECE = 1000
NAMES_WIDTH = 13
QUOTED_AT = 6

_CODES: dict[Style, str] = {
    "bold": "1",
    "good": "1;32",
    "bad": "1;31",
    "doubt": "1;35",
    "place": "36",
    "quoted": "3",
    "faint": "2",
    "heading": "1;4",
}


@dataclass(frozen=True, slots=True)
class Styled:
    """Text of one style."""

    text: str
    style: Style = "plain"


Piece = str | Styled


class Page:
    """Lines of a report. Whatever is added is escaped."""

    def __init__(self, *, width: int = NARROWEST, colour: bool = False) -> None:
        self.width = width
        self._colour = colour
        self._lines: list[str] = []

    def text(self) -> str:
        """The whole page, with the last line's end."""
        return "".join(f"{line}\n" for line in self._lines)

    def blank(self) -> None:
        self._lines.append("")

    def heading(self, text: str) -> None:
        """Begins a section."""
        self.blank()
        self.line(Styled(text, "heading"))

    def line(self, *pieces: Piece, first: str = "", hang: int = 0) -> None:
        """One line, or several: ``first`` leads the first one, the others are set in by ``hang``."""
        text, styles = _flat(pieces)
        lead = first
        for start, end in _segments(text, self.width - max(hang, len(first))):
            self._lines.append((lead + self._coloured(text, styles, start, end)).rstrip())
            lead = " " * hang

    def entry(self, *pieces: Piece) -> None:
        """One of a list."""
        self.line(*pieces, first="  - ", hang=4)

    def fact(self, name: str, *pieces: Piece) -> None:
        """A name on the left, what is to be known about it on the right."""
        lead = f"  {name:<{NAMES_WIDTH - 2}}"
        self.line(*pieces, first=lead, hang=NAMES_WIDTH)

    def quotation(self, *pieces: Piece) -> None:
        """A line of a text that has lines of its own: it is cut where it does not fit, never wrapped."""
        text, styles = _flat(pieces)
        end = _fitting(text, 0, self.width - QUOTED_AT)
        if end < len(text):
            end = _fitting(text, 0, self.width - QUOTED_AT - 1)
            text = text[:end] + "…" + text[end:]
            styles.insert(end, "faint")
            end += 1
        self._lines.append((" " * QUOTED_AT + self._coloured(text, styles, 0, end)).rstrip())

    def _coloured(self, text: str, styles: list[Style], start: int, end: int) -> str:
        if not self._colour:
            return text[start:end]
        parts: list[str] = []
        while start < end:
            stop = start
            while stop < end and styles[stop] == styles[start]:
                stop += 1
            code = _CODES.get(styles[start])
            parts.append(f"\x1b[{code}m{text[start:stop]}\x1b[0m" if code else text[start:stop])
            start = stop
        return "".join(parts)


def page_for(stream: IO[str]) -> Page:
    """As wide as the terminal, if there is one; coloured only for one, and not against the user's wish."""
    terminal = stream.isatty()
    width = max(shutil.get_terminal_size((NARROWEST, 24)).columns, NARROWEST)
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Page(width=width, colour=colour)


def show(page: Page) -> None:
    """To standard output."""
    sys.stdout.write(page.text())


def _flat(pieces: tuple[Piece, ...]) -> tuple[str, list[Style]]:
    """One string, escaped, and the style of each character."""
    texts: list[str] = []
    styles: list[Style] = []
    for piece in pieces:
        styled = Styled(piece) if isinstance(piece, str) else piece
        shown = visible(styled.text, longest=LONGEST_PIECE)
        texts.append(shown)
        styles.extend(styled.style for _ in shown)
    return "".join(texts), styles


def _segments(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where lines begin and end: broken at blanks, and within a word only if it does not fit by itself."""
    start = 0
    while True:
        end = _fitting(text, start, width)
        if end < len(text) and text[end] != " ":
            blank = text.rfind(" ", start, end)
            end = blank if blank > start else end
        yield start, end
        start = end
        while start < len(text) and text[start] == " ":
            start += 1
        if start >= len(text):
            return


def _fitting(text: str, start: int, width: int) -> int:
    used = 0
    for place in range(start, len(text)):
        used += _cells(text[place])
        if used > width and place > start:
            return place
    return len(text)


def _cells(character: str) -> int:
    """How many columns a character takes."""
    if character.isascii():
        return 1
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
