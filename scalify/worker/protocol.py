"""What parent and worker say to each other: lines of JSON, strictly read.

    parent                   worker
    Request ---------------> load, relate
            <--------------- Posed      (the answer, should nothing more come)
            <--------------- Proving    (again and again)
            <--------------- Finished | Refused | OutOfMemory

The parent's end of the pipe stays open all the while: the worker leaves when it closes.
"""

import json
from dataclasses import dataclass

from scalify.report.codec import CodecError, document, read
from scalify.report.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to verify, and how. Paths are as the user named them."""

    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    relations: str | None
    definitions: tuple[tuple[str, str], ...] = ()  # an unknown operation, and a graph that defines it
    ops: str | None = None  # a Python file of reference functions, which the worker runs
    partition: bool
    memo: bool
    duration_s: float
    search_s: float = 0.0  # how long to look for values on which the programs differ
    replay: str | None = None  # a file of such values: run both programs on these, and prove nothing
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Posed:
    """What is to be proved. ``unanswered`` is the result if the worker should be stopped."""

    unanswered: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Proving:
    """So many regions are proved."""

    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The answer."""

    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The user can put it right: an error by the name of its class."""

    error: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """The limit was met where it could still be told."""


Event = Posed | Proving | Finished | Refused | OutOfMemory

_EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Posed, Proving, Finished, Refused, OutOfMemory)
}


def write_request(request: Request) -> bytes:
    """The request as one line, its end included."""
    return document(request).encode("ascii") + b"\n"


def read_request(line: bytes) -> Request:
    """The request in a line."""
    return read(Request, json.loads(line))


def write_event(event: Event) -> bytes:
    """The event as one line, its end included."""
    return document({"event": type(event).__name__, "body": event}).encode("ascii") + b"\n"


def read_event(line: bytes) -> Event:
    """The event in a line."""
    match json.loads(line):
        case {"event": str(name), "body": body} if name in _EVENTS:
            return read(_EVENTS[name], body)
        case _:
            raise CodecError(f"not an event: {line[:80]!r}")
