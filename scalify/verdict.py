"""What a verification answers: Proved with a certificate, or Unknown with what stands in the way.

Failing to prove is no proof of a difference: an engine that finds nothing more answers Unknown.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from scalify.ir.graph import NodeId, Site

if TYPE_CHECKING:
    from scalify.prove.certificate import Certificate


class Reason(Enum):
    """Why a verdict is Unknown."""

    UNRELATED = "inputs or outputs could not be related"
    UNPROVED = "no rule proves it"
    UNKNOWN_OPS = "operations without a known meaning"
    BUDGET = "the budget of time or facts is spent"
    KILLED = "the prover was stopped or ran out of memory"
    UNCHECKED = "the certificate could not be replayed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A node as people find it: its id and op, its line, its scope."""

    node: NodeId
    op: str
    site: Site | None
    scope: str
    stack: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """The first place where the candidate could not be followed.

    ``baseline`` is its counterpart, where one is known. ``known`` says what is known of its operands and of
    itself, ``needed`` what would have been needed, ``chain`` the movements of data around it (candidate and
    baseline), and ``guess`` the likely mistake in one sentence, if there is a likely one.
    """

    candidate: Place
    baseline: Place | None
    known: tuple[str, ...] = ()
    needed: str = ""
    chain: tuple[Place, ...] = ()
    guess: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputResult:
    """One pair of outputs: ``layout`` is how the candidate's makes up the baseline's, None if unproved."""

    baseline: str
    candidate: str
    layout: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a verification did: counts that say how hard it was, and how long it took."""

    baseline_nodes: int
    candidate_nodes: int
    ranks: int
    regions: int
    distinct_regions: int
    derivations: int
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """All outputs are equal over the reals, under the printed assumptions."""

    outputs: tuple[OutputResult, ...]
    assumptions: tuple[str, ...]
    certificate: "Certificate"
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Not proved. ``missing`` says in sentences what would have to be known or defined."""

    reason: Reason
    outputs: tuple[OutputResult, ...]
    assumptions: tuple[str, ...]
    suspect: Suspect | None = None
    missing: tuple[str, ...] = ()
    work: Work | None = None


Verdict = Proved | Unknown
