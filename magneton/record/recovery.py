"""What a recording left behind when it failed or was stopped, as profiles.

In: the folder that the error named, with one folder for each side. Out: a profile of each side whose trace
was complete; it says of itself that it was cut short.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from magneton.errors import MagnetonError
from magneton.profile.model import Doubt, Profile
from magneton.record.assemble import read_journal
from magneton.record.journal import is_traced

CUT_SHORT = "cut-short"


def recover(folder: Path) -> Mapping[str, Profile]:
    """The profiles in ``folder`` by their side's name; none at all is a MagnetonError."""
    try:
        sides = sorted(place for place in folder.iterdir() if is_traced(place))
    except OSError as error:
        raise MagnetonError(
            f"cannot read {folder}: {error.strerror}", hint="give the folder that the error message named"
        ) from error
    if not sides:
        raise MagnetonError(
            f"nothing in {folder} can become a profile: no side's operators were traced to the end",
            hint="give the folder that the error message named, or record again",
        )
    return {place.name: _doubted(read_journal(place)) for place in sides}


def _doubted(profile: Profile) -> Profile:
    rounds = len({block.round for block in profile.blocks if block.pass_ == "clean"})
    replays = len({reading.round for reading in profile.replays})
    text = (
        f"the recording was cut short after {rounds} rounds of whole steps and {replays} of single operators,"
        " the last of which may be incomplete"
    )
    return replace(profile, doubts=(*profile.doubts, Doubt(kind=CUT_SHORT, text=text)))
