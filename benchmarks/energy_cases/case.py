"""What an entry of the corpus says: where it comes from, how to run it, and what a good report must tell."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from magneton.compare.model import Kind, Side

FOLDER = Path(__file__).parent
MARK = "# <-"

Outcome = Literal["waste", "trade-off", "not the same work", "none"]
Role = Literal["case", "control", "trap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Two functions ``NAME_wasteful`` and ``NAME_lean`` of ``theme``.py, each without arguments.

    The lines that waste end with ``# <- NAME``. ``outcomes`` are those that a right report may have. A
    control costs the same both ways, and in a trap the side that looks leaner is the wasteful one: nothing
    else may be blamed. The costly side is run as ``costly``, so that a report cannot be right by always
    blaming the first.
    """

    name: str
    theme: str
    report: str  # where it was reported
    mechanism: str
    role: Role = "case"
    outcomes: tuple[Outcome, ...] = ("waste",)
    kind: Kind | None = None
    operators: tuple[str, ...] = ()  # one of them is in the row of a right finding
    flag: str | None = None  # set differently, where no line is to blame
    costly: Side = "baseline"

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.theme}.py"

    @property
    def is_planted(self) -> bool:
        """Whether a finding is what a right report has."""
        return self.role == "case" and "waste" in self.outcomes

    def sides(self) -> tuple[str, str]:
        """Baseline and candidate, as ``magneton compare`` takes them."""
        wasteful, lean = (f"{self.file}:{self.name}_{side}" for side in ("wasteful", "lean"))
        return (wasteful, lean) if self.costly == "baseline" else (lean, wasteful)

    def culprit_lines(self) -> frozenset[int]:
        mark = f"{MARK} {self.name}"
        lines = enumerate(self.file.read_text(encoding="utf-8").splitlines(), start=1)
        return frozenset(number for number, line in lines if line.rstrip().endswith(mark))


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A case that cannot run with PyTorch on a processor, and why."""

    report: str
    mechanism: str
    reason: str
