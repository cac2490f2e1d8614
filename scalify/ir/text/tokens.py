"""A line of text as tokens, and a cursor over them that says what it expected."""

import json
import math
import re
from typing import Literal, cast

from scalify.errors import InvalidGraph

TokenKind = Literal["string", "number", "word", "node", "mark", "bad", "end"]

MAX_LINE_CHARS = 1 << 24
MAX_INTEGER_DIGITS = 24

# Possessive: matching never goes back, so that a hostile line costs no more than an honest one.
_TOKEN = re.compile(
    r"""[ ]*+(?:
      (?P<string>"(?:[^"\\]++|\\.)*+")
    | (?P<number>-?\d++(?:\.\d++)?(?:e[+-]?\d++)?(?![\w.]) | -?inf(?!\w) | nan(?!\w))
    | (?P<word>[A-Za-z_]\w*+)
    | (?P<node>%[\w.$/-]++)
    | (?P<mark>[=(){}\[\],:@<>+*%])
    | (?P<bad>[^ ])
    )""",
    re.VERBOSE | re.ASCII,
)
BARE_WORD = re.compile(r"(?!(?:inf|nan)\Z)[A-Za-z_]\w*", re.ASCII)
BARE_NODE = re.compile(r"[\w.$/-]+", re.ASCII)


def malformed(line: int, message: str) -> InvalidGraph:
    """A file that is not a graph, with the line where it stops being one."""
    return InvalidGraph(
        f"line {line}: {message}", hint="the file is damaged or was edited by hand: write it again"
    )


class Cursor:
    """The tokens of one line, from left to right; ``kind`` and ``text`` are those of the next one."""

    __slots__ = ("_matches", "kind", "line", "text")

    def __init__(self, text: str, line: int) -> None:
        self.line = line
        self._matches = _TOKEN.finditer(text)
        self.kind: TokenKind = "end"
        self.text = ""
        self.advance()

    def advance(self) -> None:
        """Step over the next token."""
        match = next(self._matches, None)
        if match is None:
            self.kind, self.text = "end", ""
        else:
            self.kind, self.text = cast(TokenKind, match.lastgroup), match[match.lastindex or 0]

    def fail(self, wanted: str) -> InvalidGraph:
        """The error that something else was expected here."""
        found = repr(self.text[:40]) if self.text else "the end of the line"
        return malformed(self.line, f"{found} stands where {wanted} should")

    def take_if(self, text: str) -> bool:
        """Step over a mark or word, where it is next."""
        if self.text == text and self.kind in ("mark", "word"):
            self.advance()
            return True
        return False

    def expect(self, text: str) -> None:
        """Step over a mark or word that has to be next."""
        if not self.take_if(text):
            raise self.fail(repr(text))

    def end(self) -> None:
        """Nothing may follow."""
        if self.kind != "end":
            raise self.fail("the end of the line")

    def string(self) -> str:
        """A JSON string."""
        if self.kind != "string":
            raise self.fail("a string")
        try:
            value = cast(str, json.loads(self.text))
        except ValueError:
            raise self.fail("a string of JSON") from None
        self.advance()
        return value

    def name(self) -> str:
        """A word, or a string where the name is none."""
        if self.kind != "word":
            return self.string()
        text = self.text
        self.advance()
        return text

    def node(self) -> str:
        """``%id``, or ``%`` and a string where the id is not plain."""
        if self.kind != "node":
            self.expect("%")
            return self.string()
        text = self.text[1:]
        self.advance()
        return text

    def number(self) -> int | float:
        """An int where the text has neither point nor exponent."""
        if self.kind != "number":
            raise self.fail("a number")
        text = self.text
        value = math.nan if text == "nan" else self.integer_text(text) if _is_integer(text) else float(text)
        self.advance()
        return value

    def integer_text(self, text: str) -> int:
        """An int of so few digits that reading it takes no time."""
        if len(text) > MAX_INTEGER_DIGITS:
            raise self.fail("a number of fewer digits")
        return int(text)

    def integer(self) -> int:
        """A number that is an int."""
        if self.kind != "number" or not _is_integer(self.text):
            raise self.fail("an integer")
        value = self.integer_text(self.text)
        self.advance()
        return value


def _is_integer(text: str) -> bool:
    return text[1:].isdigit() or text.isdigit()
