"""The options that commands share, and how their text is read."""

import re
from enum import StrEnum
from typing import Annotated

import typer

SMALLEST_MEMORY_BYTES = 256_000_000  # what the prover needs before it has read anything, and some more
SHORTEST_S = 0.1
LONGEST_S = 1e8
_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


class Format(StrEnum):
    """How results are written to standard output."""

    TEXT = "text"
    JSON = "json"


class ReportFormat(StrEnum):
    """How a verdict is written to standard output."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


FormatOption = Annotated[
    Format, typer.Option("--format", metavar="FORMAT", help="Of what goes to standard output: text or json.")
]
ReportFormatOption = Annotated[
    ReportFormat,
    typer.Option("--format", metavar="FORMAT", help="Of what goes to standard output: text, json or sarif."),
]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="All movements around a suspect, and where it was called from."),
]


def memory_size(text: str) -> int:
    """``4GB`` or ``1.5GiB`` in bytes."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?) ?([kmg]i?b)", text.strip(), re.IGNORECASE | re.ASCII)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a size; write 4GB, 800MB or 1.5GiB")
    size_bytes = int(float(found[1]) * _UNITS[found[2].lower()])
    if size_bytes < SMALLEST_MEMORY_BYTES:
        raise typer.BadParameter(f"{text} is less than the prover itself needs: 256MB at least")
    return size_bytes


def seconds(text: str) -> float:
    """A time to wait."""
    try:
        duration_s = float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None
    if not SHORTEST_S <= duration_s <= LONGEST_S:
        raise typer.BadParameter(f"{text} is not between {SHORTEST_S} and {LONGEST_S:g} seconds")
    return duration_s


def search_time(text: str) -> float:
    """A time to look for values; 0 is not at all."""
    return 0.0 if text.strip() == "0" else seconds(text)


def definition(text: str) -> tuple[str, str]:
    """``OP=GRAPH``, ``OP[NAME=VALUE]=GRAPH``: an unknown operation and the file of a graph."""
    bracket, equals_at = text.find("["), text.find("=")
    has_attributes = 0 <= bracket < equals_at
    split = text.find("]=") + 1 if has_attributes else equals_at
    target, equals, path = text[:split], text[split : split + 1], text[split + 1 :]
    if not equals or not target or not path:
        raise typer.BadParameter(
            f"{text!r} is no definition; write OP=GRAPH, as in hlo.custom-call.Gelu=gelu.pt"
        )
    return target, path


def mesh_axes(text: str) -> tuple[tuple[str, int], ...]:
    """``tp=4,dp=2`` as axes, the slowest first."""
    axes: list[tuple[str, int]] = []
    for part in text.split(","):
        found = re.fullmatch(r"([A-Za-z_]\w{0,63})=([1-9]\d{0,5})", part.strip(), re.ASCII)
        if found is None:
            raise typer.BadParameter(f"{part!r} is no axis; write NAME=SIZE, as in tp=4,dp=2")
        axes.append((found[1], int(found[2])))
    if len({name for name, _ in axes}) != len(axes):
        raise typer.BadParameter("two axes have the same name")
    return tuple(axes)
