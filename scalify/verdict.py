"""What a verification answers: Proved with a certificate, Refuted with a witness, or Unknown with a reason.

Failing to prove is no proof of a difference: an engine that finds nothing more answers Unknown. Refuted needs
values on which the given graphs, run from their inputs, differ by more than rounding explains.
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
    AGREED = "the programs agree on the values of a witness"
    WITHOUT_VALUE = "the baseline has no value on the values of a witness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A node as people find it: its id and op, its line, its scope."""

    node: NodeId
    op: str
    site: Site | None
    scope: str
    stack: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The smallest part of both programs that was not proved: how much it is, where it begins and ends."""

    baseline_nodes: int
    candidate_nodes: int
    begins: tuple[Place, ...] = ()
    ends: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """The first place where the candidate could not be followed, or where its values go wrong.

    ``baseline`` is its counterpart, where one is known. ``known`` says what is known of its operands and of
    itself, ``needed`` what would have been needed, ``derivable`` in which ways it is the baseline's instead,
    ``chain`` the movements of data around it (candidate and baseline), and ``guess`` the likely mistake in
    one sentence, if there is a likely one. ``mended`` says that with the right value put in the place of its
    result the output that differed is right: what is wrong there is wrong for no other reason.
    """

    candidate: Place
    baseline: Place | None
    known: tuple[str, ...] = ()
    needed: str = ""
    derivable: tuple[str, ...] = ()
    chain: tuple[Place, ...] = ()
    guess: str = ""
    mended: bool = False
    extent: Extent | None = None


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
    """Not proved. ``missing`` says in sentences what would have to be known or defined.

    ``lead`` says in a sentence where values differed in something smaller than the given programs: a region
    by itself, shrunk shapes, made-up meanings of unknown operations. It is a reason to look, no refutation.
    """

    reason: Reason
    outputs: tuple[OutputResult, ...]
    assumptions: tuple[str, ...]
    suspect: Suspect | None = None
    missing: tuple[str, ...] = ()
    lead: str = ""
    work: Work | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How values were made: everything follows from it, on any machine (``scalify.refute.draw``)."""

    family: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What is known of the values of an input, from what is done with it.

    Whole numbers are 0 .. ``size``-1, where there is one, and ``distinct`` where they say to which rows
    something is written. Real numbers are ``positive`` where a program divides by them or takes their root.
    ``edges`` are numbers that they are compared with.
    """

    size: int | None = None
    distinct: bool = False
    positive: bool = False
    edges: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenValue:
    """What one baseline input held: its digest always, its elements where they are few."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    domain: Domain
    sha256: str
    values: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One element of an output in which the programs differ.

    ``index`` is its place in what ``rank`` holds of the candidate's output, ``baseline_index`` that in the
    baseline's; of complex numbers the last one says whether it is the real (0) or the imaginary (1) part.
    ``found`` is None where the candidate has no value although the baseline has: it divides zero by zero,
    takes infinity from infinity, or reads beyond a table. ``uncertainty`` bounds what rounding may have done
    to ``expected`` and ``found`` together.
    """

    baseline: str
    candidate: str
    rank: int
    index: tuple[int, ...]
    baseline_index: tuple[int, ...]
    expected: float
    found: float | None
    uncertainty: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDifference:
    """How much of one pair of outputs differs, of the elements that could be compared.

    ``pattern`` says what the differing elements have in common, where they do: "2 times the baseline's".
    """

    baseline: str
    candidate: str
    differing: int
    compared: int
    pattern: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Values of the baseline's inputs on which the programs differ; the candidate's follow by the relations.

    ``free`` are inputs and unwritten memory of the candidate that hold nothing of the baseline and were given
    values too. ``beyond`` says where the candidate reads a row that its table does not have, if it does.
    """

    draw: Draw
    given: tuple[GivenValue, ...]
    difference: Difference
    outputs: tuple[OutputDifference, ...]
    free: tuple[str, ...] = ()
    beyond: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuted:
    """The programs differ under the printed assumptions: ``witness`` shows on which values, and by how much.

    ``outputs`` says which of them were nevertheless proved; ``suspect`` is where the candidate goes wrong.
    """

    outputs: tuple[OutputResult, ...]
    assumptions: tuple[str, ...]
    witness: Witness
    suspect: Suspect | None = None
    work: Work | None = None


Verdict = Proved | Refuted | Unknown
