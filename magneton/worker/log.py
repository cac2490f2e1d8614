"""The end of a worker's log, made safe to print: systems write progress bars, colours and worse into it."""

from pathlib import Path

LAST_LINES = 20
LAST_BYTES = 1 << 16
LINE_CHARACTERS = 300


def log_tail(log: Path) -> str:
    """The last lines of ``log``, indented, without a single control character."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_BYTES))
        text = file.read(LAST_BYTES).decode("utf-8", errors="backslashreplace")
    return indented(text)


def indented(text: str) -> str:
    lines = [line.rstrip().rpartition("\r")[2] for line in text.split("\n")]
    kept = [escaped(line)[:LINE_CHARACTERS] for line in lines if line.strip()][-LAST_LINES:]
    return "\n".join(f"  | {line}" for line in kept)


def escaped(text: str) -> str:
    """``text`` with whatever a terminal would obey written out; tabs become spaces."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text.expandtabs(4)
    )
