"""How much a search for values may cost."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How long to look for values, for how many draws at most, and how much memory a run may take."""

    duration_s: float = 60.0
    draws: int = 48
    memory_bytes: int = 2_000_000_000
