"""All interventions of a recording, at the two moments at which a system can be changed."""

import os
from collections.abc import Callable, Mapping, Sequence

from magneton.interventions import (
    ForceBranch,
    Intervention,
    SetArgument,
    SetAttribute,
    SetEnvironment,
    SetFlag,
    SetOption,
)
from magneton.profile.origin import Mode
from magneton.worker.interventions.functions import edit_functions
from magneton.worker.interventions.refusal import Refusal
from magneton.worker.interventions.settings import set_attribute, set_early, set_flag


def apply_before(interventions: Sequence[Intervention], options: Mapping[str, str]) -> None:
    """Before the system loads. What the parent had to change is only looked at."""
    for each in interventions:
        if isinstance(each, SetFlag):
            set_early(each)
        elif isinstance(each, SetOption) and options.get(each.name) != each.value:
            raise Refusal(each.text, "the system was given another value")
        elif isinstance(each, SetEnvironment) and os.environ.get(each.name) != each.value:
            raise Refusal(each.text, "the process was given another value")


def apply_after(
    interventions: Sequence[Intervention], mode: Mode, roots: Callable[[], Mapping[str, object]]
) -> None:
    """Once it has loaded: all of them take effect in every step, or ``Refusal`` says which one cannot."""
    late = [each for each in interventions if isinstance(each, ForceBranch | SetArgument | SetAttribute)]
    if late and mode != "eager":
        raise Refusal(
            late[0].text, "the system fixes what it runs while it loads, by compiling or capturing it"
        )
    edit_functions([each for each in late if not isinstance(each, SetAttribute)])
    for each in interventions:
        if isinstance(each, SetFlag):
            set_flag(each)
        elif isinstance(each, SetAttribute):
            set_attribute(each, roots())
