"""How a setting of one side is given to the other: a candidate cause becomes an intervention, or a reason."""

from magneton.compare.model import Difference, Side
from magneton.errors import MagnetonError
from magneton.interventions import Intervention, Scalar, SetEnvironment, SetFlag, SetOption
from magneton.profile.origin import Origin
from magneton.system import complete_options

ENVIRONMENT = "env."  # how variables begin among the flags of a profile
SWITCHES = ("torch.",)  # flags that name a switch of the process; others say what came of options


def change_for(cause: Difference, costly: Side, origin: Origin) -> Intervention | str:
    """What sets ``cause`` on the costly side, which ``origin`` describes, as it is on the lean side."""
    value = cause.candidate if costly == "baseline" else cause.baseline
    if cause.where == "version":
        return "another version needs another environment"
    if cause.where == "option":
        return _option(cause.name, value, origin)
    if value is None:
        return "the lean side does not have it"
    if cause.name.startswith(ENVIRONMENT):
        return SetEnvironment(name=cause.name.removeprefix(ENVIRONMENT), value=value)
    if cause.name.startswith(SWITCHES):
        return SetFlag(name=cause.name, value=_scalar(value))
    return "it follows from other settings"


def _option(name: str, value: str | None, origin: Origin) -> Intervention | str:
    """What was not given is what the system takes then."""
    if value is None:
        try:
            value = complete_options(origin.system, {}).get(name)
        except MagnetonError as error:
            return str(error)
    return "it has no default" if value is None else SetOption(name=name, value=value)


def _scalar(text: str) -> Scalar:
    """A profile keeps flags as Python prints them."""
    known: dict[str, Scalar] = {"True": True, "False": False, "None": None}
    if text in known:
        return known[text]
    return int(text) if text.removeprefix("-").isdecimal() else text
