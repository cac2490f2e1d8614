"""The end of a worker's log, made safe to print: systems write progress bars, colours and worse into it."""

from pathlib import Path

LAST_LINES = 20
LAST_BYTES = 1 << 16
LINE_CHARACTERS = 300
STACK_HEADER = "(most recent call first):"
LINES_ABOVE_STACK = 4


def log_tail(log: Path) -> str:
    """The last lines of ``log``, indented, without a single control character."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_BYTES))
        text = file.read(LAST_BYTES).decode("utf-8", errors="backslashreplace")
    return indented(text)


def indented(text: str) -> str:
    lines = [line.rstrip().rpartition("\r")[2] for line in text.split("\n")]
    kept = [escaped(line)[:LINE_CHARACTERS] for line in lines if line.strip()]
    first = _first_of_interest(kept)
    return "\n".join(f"  | {line}" for line in kept[first : first + LAST_LINES])


def _first_of_interest(lines: list[str]) -> int:
    """Usually so that the last lines show; where a stack ends the log, its innermost frames."""
    last_lines = max(0, len(lines) - LAST_LINES)
    headers = [number for number, line in enumerate(lines) if line.endswith(STACK_HEADER)]
    if not headers or any(
        not line.startswith(("  ", "Extension modules")) for line in lines[headers[-1] + 1 :]
    ):
        return last_lines
    return min(last_lines, max(0, headers[-1] - LINES_ABOVE_STACK))


def escaped(text: str) -> str:
    """``text`` with whatever a terminal would obey written out; tabs become spaces."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text.expandtabs(4)
    )
