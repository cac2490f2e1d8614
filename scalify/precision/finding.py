"""What is found: a place in the candidate that rounds more than its counterpart in the baseline."""

from dataclasses import dataclass
from enum import Enum

from scalify.ir.graph import DType
from scalify.verdict import Place


class Kind(Enum):
    """In which way precision is lost."""

    RANKS_SUM = "ranks add up in a coarser format"
    ROUNDED_TERMS = "terms are rounded before they are added up"
    STATISTICS = "a sum, a mean or what is made of one is taken in a coarser format"
    HELD = "an input is held in a coarser format"
    ROUNDED = "a value is rounded that the baseline keeps"
    ROUNDED_TWICE = "a value is rounded on its way to the format in which both read it"
    MIXED_NORM = "a fused operation has operands of two formats"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionError:
    """How far values are from those that no rounding gives: root mean squares, relative.

    Both programs were run on one draw of inputs, with each operation's result rounded once to its dtype, and
    again in float64. At the finding's places; None where a side has no such place.
    """

    baseline: float | None
    candidate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionFinding:
    """The candidate works in ``found`` where the baseline works in ``expected``.

    ``text`` says it in a sentence; ``times`` is how often the same line is found (layers). ``error`` is None
    where the programs were too large to run, or have no meaning somewhere.
    """

    kind: Kind
    candidate: Place
    baseline: Place | None
    expected: DType
    found: DType
    text: str
    times: int = 1
    error: PrecisionError | None = None
