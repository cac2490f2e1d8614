"""Figures for people."""

_UNITS = ("B", "kB", "MB", "GB", "TB")


def size_text(size_bytes: int) -> str:
    """``4_000_000_000`` as ``4 GB``."""
    size = float(size_bytes)
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} {_UNITS[-1]}"


def seconds_text(duration_s: float) -> str:
    """Three digits, never finer than a millisecond: ``0.412 s``, ``73.1 s``."""
    return (
        f"{duration_s:.3f} s"
        if duration_s < 1
        else f"{duration_s:.3g} s"
        if duration_s < 1000
        else f"{duration_s:.0f} s"
    )


def counted(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``, ``12,345 nodes``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
