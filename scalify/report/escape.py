"""Strings from profiles are foreign: they are shown, never obeyed.

A terminal obeys escape sequences, a bidirectional control reverses the text after it, a newline forges
a line of the report, and a CI runner that reads the log obeys ``::error::`` at the start of a line and
``##[group]`` or ``##vso[`` anywhere. Every such character is written out as its escape. Markup needs no
care here: the reports build ``rich.text.Text`` objects and never parse markup.
"""

import re
import unicodedata

LONGEST = 300  # characters of one string in a report
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, format (bidi, zero width), unassigned, ...
# A word that is too long for its column is broken anywhere, so GitHub's "::NAME::" may come to stand at the
# start of a line. Its names are few; "torch::nn::relu" stays as it is, unless a line may begin with "::".
_COMMAND_NAMES = (
    "add-mask|add-matcher|add-path|debug|echo|endgroup|error|group|notice|remove-matcher|save-state|set-env"
    "|set-output|stop-commands|warning"
)
_COMMANDS = re.compile(rf"(?:^|(?<=\s)):(?=:)|:(?=:(?:{_COMMAND_NAMES})\b)|#(?=#[a-z]*\[)", re.IGNORECASE)


def visible(text: str, *, longest: int = LONGEST) -> str:
    """``text`` on one line, with every character that a terminal or a CI runner would obey written out."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    seen = "".join(_escaped(c) if unicodedata.category(c) in _UNSEEN else c for c in cut)
    return _COMMANDS.sub(lambda found: f"\\x{ord(found[0]):02x}", seen)


def visible_lines(text: str) -> str:
    """The same for a text of several lines that may keep its newlines (an error's hint, a log's tail)."""
    return "\n".join(visible(line, longest=len(line) or 1) for line in text.split("\n"))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", errors="backslashreplace").decode("ascii")
