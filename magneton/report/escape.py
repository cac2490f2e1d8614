"""Strings from profiles are foreign: they are shown, never obeyed.

A terminal obeys escape sequences, a bidirectional control reverses the text after it, a newline forges
a line of the report. Every such character is written out as its escape. Markup needs no care here: the
reports build ``rich.text.Text`` objects and never parse markup.
"""

import unicodedata

LONGEST = 300  # characters of one string in a report
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, format (bidi, zero width), unassigned, ...


def visible(text: str, *, longest: int = LONGEST) -> str:
    """``text`` on one line, with every character that a terminal would obey written as an escape."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(_escaped(c) if unicodedata.category(c) in _UNSEEN else c for c in cut)


def visible_lines(text: str) -> str:
    """The same for a text of several lines that may keep its newlines (an error's hint, a log's tail)."""
    return "\n".join(visible(line, longest=len(line) or 1) for line in text.split("\n"))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", errors="backslashreplace").decode("ascii")
