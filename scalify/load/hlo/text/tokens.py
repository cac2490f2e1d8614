"""HLO text as tokens, in one pass. Comments and white space separate tokens and are otherwise nothing."""

import re

from scalify.errors import InvalidGraph
from scalify.load.hlo.program import checked_name

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|/\*.*?\*/|//[^\n]*)
    |(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |(?P<word>(?:[A-Za-z0-9_.+%'*?#@!$&|~^;]++|-(?!>))++)
    |(?P<mark>->|<=|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
MAX_DEPTH = 64


class Cursor:
    """The next token of a text. ``text`` is "" at the end; ``adjacent`` says that no space came before it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._position = 0
        self._end = 0
        self.text = ""
        self.kind = ""
        self.adjacent = False
        self.advance()

    def advance(self) -> str:
        """Step over the current token and return it."""
        passed = self.text
        self.adjacent = True
        position = self._end
        while True:
            match = _TOKEN.match(self._source, position)
            if match is None:
                self._position = self._end = len(self._source)
                self.text = self.kind = ""
                return passed
            kind = match.lastgroup or ""
            position = match.end()
            if kind != "space":
                break
            self.adjacent = False
        self._position, self._end = match.start(), position
        self.text, self.kind = match.group(), kind
        if self.text == '"' or self._source.startswith("/*", match.start()):
            raise self.wrong("a string or a comment is not closed")
        return passed

    @property
    def at_string(self) -> bool:
        """Whether the next token is a quoted string."""
        return self.kind == "string"

    def take(self, text: str) -> bool:
        """Step over the token if it is ``text``."""
        if self.text != text or self.kind == "string":
            return False
        self.advance()
        return True

    def expect(self, text: str) -> None:
        """Step over ``text``, or refuse the file."""
        if not self.take(text):
            raise self.wrong(f"expected {text!r}, found {self._shown()}")

    def word(self, what: str) -> str:
        """Step over a word."""
        if self.kind != "word":
            raise self.wrong(f"expected {what}, found {self._shown()}")
        return self.advance()

    def name(self, what: str) -> str:
        """Step over the name of an instruction or computation, with or without its percent sign."""
        return checked_name(self.word(what).removeprefix("%"))

    def integer(self) -> int:
        """Step over an integer."""
        text = self.word("an integer")
        digits = text.removeprefix("-")
        if not (digits.isdecimal() and digits.isascii() and len(digits) <= 20):
            raise self.wrong(f"expected an integer, found {text[:40]!r}")
        return int(text)

    def string(self) -> str:
        """Step over a quoted string; its content."""
        if self.kind != "string":
            raise self.wrong(f"expected a string, found {self._shown()}")
        return unquoted(self.advance())

    def raw(self) -> str:
        """Step over one value of any form, as it stands: brackets, their content, what adjoins them."""
        start = self._position
        end = start
        first = True
        while self.text and (first or self.adjacent) and (self.text not in _CLOSING and self.text != ","):
            if self.text in _OPENING and self.kind == "mark":
                end = self._skip_group()
            else:
                end = self._end
                self.advance()
            first = False
        if first:
            raise self.wrong(f"expected a value, found {self._shown()}")
        return self._source[start:end]

    def _skip_group(self) -> int:
        pending = [_OPENING[self.advance()]]
        while True:
            if not self.text or len(pending) > MAX_DEPTH:
                raise self.wrong("brackets are not closed")
            end = self._end
            kind, text = self.kind, self.advance()
            if kind == "string":
                continue
            if text in _OPENING:
                pending.append(_OPENING[text])
            elif text in _CLOSING:
                if text != pending.pop():
                    raise self.wrong("brackets do not match")
                if not pending:
                    return end

    def wrong(self, what: str) -> InvalidGraph:
        """The refusal of the text at the current token."""
        line = self._source.count("\n", 0, self._position) + 1
        return InvalidGraph(f"line {line}: {what}", hint="HLO text as XLA prints it is read; write it again")

    def _shown(self) -> str:
        return repr(self.text[:40]) if self.text else "the end of the file"


def unquoted(text: str) -> str:
    """The content of a quoted string."""
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match.group(1), match.group(1)), text[1:-1])
