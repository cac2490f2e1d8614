"""From the text of options to checked values."""

from collections.abc import Sequence
from typing import get_args

from magneton.cli.options import DTypeName
from magneton.compare.model import KINDS, Comparison
from magneton.errors import EXIT_FINDING, EXIT_OK, EXIT_UNRESOLVED, MagnetonError
from magneton.names import unknown
from magneton.workload import DType

DTYPES: tuple[DType, ...] = get_args(DType)
ANY = "any"
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
    certain = [finding for finding in comparison.findings if finding.outcome in OUTCOMES]
    if any({ANY, finding.outcome, finding.kind} & set(fail_on) for finding in certain):
        return EXIT_FINDING
    return EXIT_UNRESOLVED if comparison.verdict == "unresolved" else EXIT_OK
