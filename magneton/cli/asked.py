"""From the text of options to checked values."""

import re
from collections.abc import Sequence
from typing import get_args

from magneton.cli.options import CacheName, DTypeName
from magneton.compare.model import KINDS, Comparison
from magneton.configs import config_names
from magneton.envs.interpreter import Named, named_interpreters
from magneton.errors import EXIT_FINDING, EXIT_OK, EXIT_UNRESOLVED, MagnetonError
from magneton.match.model import SideName
from magneton.names import nearest, unknown
from magneton.profile.lookup import find_operators, operator_names
from magneton.profile.model import OpId, Profile
from magneton.record.request import Filled
from magneton.workload import DType, Phase

CACHES: tuple[Filled, ...] = get_args(Filled)
DTYPES: tuple[DType, ...] = get_args(DType)
ANY = "any"
SIDES: tuple[SideName, ...] = get_args(SideName)
OUTCOMES = ("waste", "trade-off")  # an unresolved difference has an exit status of its own


def listed(text: str | None) -> tuple[str, ...] | None:
    """``prefill,decode`` as a tuple; None where nothing was given."""
    if text is None:
        return None
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise MagnetonError(f"no name in the list {text!r}", hint="write names with commas between them")
    return names


def dtype_named(choice: DTypeName | None) -> DType | None:
    """The command line's choice as a workload knows it."""
    return next((dtype for dtype in DTYPES if choice is not None and dtype == choice.value), None)


def cache_named(choice: CacheName | None) -> Filled | None:
    """The command line's choice as a request knows it."""
    return next((cache for cache in CACHES if choice is not None and cache == choice.value), None)


def named_pythons(texts: Sequence[str] | None) -> Named:
    """What ``--python`` names, each of which exists."""
    return named_interpreters(texts or (), config_names("systems"))


def failing(text: str | None) -> tuple[str, ...]:
    """What ``--fail-on`` names, checked before anything is measured."""
    names = listed(text) or ()
    valid = (ANY, *OUTCOMES, *KINDS)
    for name in names:
        if name not in valid:
            raise unknown("kind of finding", name, valid)
    return names


def exit_status(comparison: Comparison, fail_on: Sequence[str]) -> int:
    """0 unless something was asked to fail on, or the question stays open."""
    if comparison.verdict == "not the same work":
        return EXIT_UNRESOLVED
    certain = [
        {finding.outcome, finding.kind} for finding in comparison.findings if finding.outcome in OUTCOMES
    ]
    of_hosts = [{finding.outcome} for finding in comparison.host_findings]
    if any((names | {ANY}) & set(fail_on) for names in (*certain, *of_hosts)):
        return EXIT_FINDING
    return EXIT_UNRESOLVED if comparison.verdict == "unresolved" else EXIT_OK


def phase_asked(name: str | None, baseline: Profile, candidate: Profile) -> Phase | None:
    """A phase that either side went through."""
    phases = tuple(dict.fromkeys(op.phase for op in (*baseline.operators, *candidate.operators)))
    if name is not None and name not in phases:
        raise unknown("phase", name, phases)
    return name


def operators_asked(
    text: str, baseline: Profile, candidate: Profile, phase: Phase | None
) -> tuple[tuple[SideName, OpId], ...]:
    """What ``--explain`` names: one operator by side and id, or all that a name or a module stands for."""
    profiles: dict[SideName, Profile] = {"baseline": baseline, "candidate": candidate}
    before, colon, after = text.partition(":")
    sides: tuple[SideName, ...] = tuple(side for side in SIDES if colon and side == before)
    wanted = after if sides else text
    if wanted.isdecimal():
        return _numbered(wanted, sides, profiles)
    if re.fullmatch(r"\w+:[0-9]+", text):
        raise unknown("side", before, SIDES)
    found: list[tuple[SideName, OpId]] = []
    names: dict[str, None] = {}
    for side in sides or SIDES:
        found.extend((side, op_id) for op_id in find_operators(profiles[side], wanted, phase))
        names |= dict.fromkeys(operator_names(profiles[side], phase))
    if not found:
        raise _not_found(wanted, tuple(names))
    return tuple(found)


def _numbered(
    number: str, sides: Sequence[SideName], profiles: dict[SideName, Profile]
) -> tuple[tuple[SideName, OpId], ...]:
    if not sides:
        raise MagnetonError(
            f"operator {number}: of which side?", hint=f"write baseline:{number} or candidate:{number}"
        )
    (side,) = sides
    last = len(profiles[side].operators) - 1
    if len(number) > len(str(last)) or int(number) > last:
        raise MagnetonError(
            f"the {side} has no operator {number[:20]}", hint=f"its last one is {side}:{last}"
        )
    return ((side, OpId(int(number))),)


def _not_found(wanted: str, names: Sequence[str]) -> MagnetonError:
    close = nearest(wanted, names)
    listed = "magneton match without --explain lists some"
    return MagnetonError(
        f"no operator or module is called {wanted!r}",
        hint=f"did you mean {close!r}? ({listed})" if close else listed,
    )
