"""How the reader of a profile file says no: one line that names the place, safe to print."""

from magneton.errors import InvalidProfile

_SHOWN = 60


def damaged(what: str) -> InvalidProfile:
    """The refusal of a file that no release of magneton wrote that way."""
    return InvalidProfile(what, hint="the file is damaged or was not written by magneton; record it again")


def quoted(text: str) -> str:
    """``text`` from a file, for an error message: escaped to one line of ASCII, and short."""
    return ascii(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
