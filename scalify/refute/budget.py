"""How much a search for values may cost."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How long to look for values, and for how many draws at most."""

    duration_s: float = 60.0
    draws: int = 48
