"""Names that people type: what to say when one of them is not known."""

from collections.abc import Iterable
from difflib import get_close_matches

from magneton.errors import MagnetonError


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name that ``name`` was most likely meant to be; None where none comes close."""
    spelled = {_plain(choice): choice for choice in valid}
    begun = [choice for plain, choice in spelled.items() if name and plain.startswith(_plain(name))]
    if len(begun) == 1:
        return begun[0]
    close = get_close_matches(_plain(name), spelled, n=1, cutoff=0.5)
    return spelled[close[0]] if close else None


def unknown(what: str, name: str, valid: Iterable[str]) -> MagnetonError:
    """The error for a name that is none of ``valid``: the nearest one if any is near, and the whole list."""
    choices = tuple(valid)
    close = nearest(name, choices)
    listed = f"valid: {', '.join(choices)}" if choices else "there are none"
    return MagnetonError(
        f"unknown {what} {name!r}", hint=f"did you mean {close!r}? ({listed})" if close else listed
    )


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")
