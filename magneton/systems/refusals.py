"""What an engine refuses to load, as an error that says what the user can do about it.

Engines refuse in exceptions of their own, forty frames deep. Those that are about the model, the options or
the workload are known by their words; any other stays what it is, and is told with the end of the log.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from re import Pattern

from magneton.errors import MagnetonError

MESSAGE_CHARACTERS = 400
# Of the library that engines read tokenizers with.
NO_TOKENIZER = re.compile(r"(?i)backend tokenizer|can't load (?:the )?(?:configuration of )?.*tokenizer")
# pydantic's: how many errors, which field, what is wrong, and then what it was given, at any length.
VALIDATION = re.compile(
    r"\d+ validation errors? for \w+\s*(?P<field>[\w.]+\n)?\s*(?:Value error, )?(?P<what>.*?)(?: \[type=|$)",
    re.S,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An exception whose type and words fit ``pattern`` is the engine's refusal; ``hint`` may hold {0}, what
    the pattern captured."""

    pattern: Pattern[str]
    hint: str


@contextmanager
def refusals(engine: str, known: Sequence[Refusal]) -> Generator[None, None, None]:
    """Inside, what ``engine`` raises is a MagnetonError if it is one of its ``known`` refusals."""
    try:
        yield
    except MagnetonError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        for refusal in known:
            if match := refusal.pattern.search(told):
                hint = refusal.hint.format(*match.groups())
                raise MagnetonError(f"{engine} refuses this: {_essence(error)}", hint=hint) from error
        raise


def _essence(error: Exception) -> str:
    """What is wrong, on one line and of a length that is read."""
    text = str(error)
    if match := VALIDATION.match(text):
        text = f"{(match['field'] or '').strip()} {match['what']}"
    first = text.strip().partition("\n\n")[0]
    line = " ".join(first.split())
    return line if len(line) <= MESSAGE_CHARACTERS else f"{line[:MESSAGE_CHARACTERS].rpartition(' ')[0]} ..."
