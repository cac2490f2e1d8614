"""The one list of strings that all tables of a profile file point into: ``strings.jsonl``, one per line."""

import json
from collections.abc import Iterable, Sequence

from magneton.errors import InvalidProfile
from magneton.profile.damage import damaged, quoted

MEMBER = "strings.jsonl"
MAX_BYTES = 64 * 1024 * 1024
MAX_TEXTS = 1_000_000
MAX_TEXT_LENGTH = 1024 * 1024  # characters


def unicode_text(text: str) -> str:
    """``text`` with what is no Unicode (a path's stray bytes, decoded as lone surrogates) written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class TextPool:
    """Strings in the order of their first use, each once."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def add(self, texts: Iterable[str]) -> list[int]:
        """The index of each text."""
        index = self._index
        return [index.setdefault(text, len(index)) for text in texts]

    def add_optional(self, texts: Iterable[str | None]) -> list[int | None]:
        return [None if text is None else self._index.setdefault(text, len(self._index)) for text in texts]

    def encode(self) -> bytes:
        if len(self._index) > MAX_TEXTS:
            raise InvalidProfile(
                f"{len(self._index)} different strings; a profile file holds at most {MAX_TEXTS}",
                hint="record fewer steps",
            )
        for text in self._index:
            if len(text) > MAX_TEXT_LENGTH:
                raise InvalidProfile(
                    f"the string {quoted(text)} has {len(text)} characters; at most {MAX_TEXT_LENGTH} fit",
                    hint="shorten what the recording writes there",
                )
        lines = (json.dumps(unicode_text(text), ensure_ascii=False) + "\n" for text in self._index)
        data = "".join(lines).encode("utf-8")
        if len(data) > MAX_BYTES:
            raise InvalidProfile(
                f"strings of {len(data)} bytes; a profile file holds at most {MAX_BYTES}",
                hint="record fewer steps",
            )
        return data


def decode_texts(data: bytes) -> Sequence[str]:
    """The strings of ``strings.jsonl``. Line by line, so that no line can unfold into a large structure."""
    if data and not data.endswith(b"\n"):
        raise damaged(f"{MEMBER} is cut short")
    count = data.count(b"\n")
    if count > MAX_TEXTS:
        raise damaged(f"{MEMBER} has {count} lines; at most {MAX_TEXTS} are allowed")
    return [_decode_line(line, number) for number, line in enumerate(data.split(b"\n")[:-1], start=1)]


def _decode_line(line: bytes, number: int) -> str:
    if not line.startswith(b'"'):
        raise damaged(f"{MEMBER} has no string in line {number}")
    try:
        text: str = json.loads(line.decode("utf-8"))
        text.encode("utf-8")  # an escape can spell half a character
    except ValueError as error:
        raise damaged(f"{MEMBER} has no valid string in line {number}") from error
    if len(text) > MAX_TEXT_LENGTH:
        raise damaged(
            f"{MEMBER} has a string of {len(text)} characters in line {number}; at most {MAX_TEXT_LENGTH}"
        )
    return text
